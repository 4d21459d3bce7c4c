package crash

import (
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// Bounds of a cause.
const (
	causeLines  = 3
	causeBytes  = 200 // of each line
	causeFrames = 6
)

// causeIn returns the first lines of Go's output, up to the goroutines. For what it calls
// a fatal error Go writes the name to standard error only, so the output has no such
// line; then the functions on the stack say what it was.
func causeIn(written []byte) string {
	var lines []string
	for line := range strings.Lines(string(written)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "runtime stack:") || len(lines) == causeLines {
			break
		}
		if line != "" {
			lines = append(lines, text.Line(line, causeBytes))
		}
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n")
	}
	frames := framesIn(string(written))
	if len(frames) == 0 {
		return "Go has ended the process; the file says more"
	}
	return text.Line("fatal error: "+meaningOf(frames)+"in "+strings.Join(frames, ", "), causeLines*causeBytes)
}

// framesIn returns the functions of the goroutine that failed, innermost first, which
// include the runtime's own frames. Recursive functions are listed once.
func framesIn(text string) (frames []string) {
	goroutines := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "goroutine ") {
			if goroutines++; goroutines > 1 {
				break
			}
			continue
		}
		end := strings.LastIndexByte(line, '(')
		if end <= 0 || line[0] == '\t' || strings.HasPrefix(line, "created by ") {
			continue
		}
		name := line[:end]
		if slices.Contains(frames, name) || name == "runtime.throw" || name == "runtime.fatal" {
			continue
		}
		if frames = append(frames, name); len(frames) == causeFrames {
			break
		}
	}
	return frames
}

// meaningOf names the fatal errors that guests and payloads can cause.
func meaningOf(frames []string) string {
	switch frames[0] {
	case "runtime.newstack":
		return "stack overflow, "
	case "internal/runtime/maps.fatal":
		return "concurrent use of a map, "
	}
	for _, f := range frames {
		switch f {
		case "runtime.(*mcache).allocLarge", "runtime.(*mcache).refill", "runtime.(*mheap).grow", "runtime.sysMap", "runtime.sysMapOS",
			"runtime.sysUsedOS", "runtime.persistentalloc1", "runtime.stackalloc":
			return "out of memory, "
		}
	}
	return ""
}
