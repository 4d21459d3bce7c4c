package process

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/text"
)

// Bounds of what a process writes to its standard streams.
const (
	maxLine  = 8 << 10
	maxTail  = 1 << 10          // of the last lines, to explain why it has ended
	maxBurst = 256 << 10        // bytes of lines within window; the rest is counted and dropped
	window   = 10 * time.Second // after which it may write as much again
)

// copyLines passes on the lines of a stream until its end, at a bounded rate. It never stops
// reading, so that the writer never blocks.
func (l *launched) copyLines(r *bufio.Reader) {
	var budget int
	var dropped int64
	var since time.Time
	for {
		line, err := r.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			now := time.Now()
			if now.Sub(since) > window {
				if dropped > 0 {
					l.line("… " + strconv.FormatInt(dropped, 10) + " lines more")
				}
				since, budget, dropped = now, maxBurst, 0
			}
			if budget -= len(line); budget >= 0 {
				shown := text.Line(strings.TrimRight(string(line), "\r\n"), maxLine)
				l.tail.add(shown)
				l.line(shown)
			} else {
				dropped++
			}
		}
		if err != nil && !cut {
			if dropped > 0 {
				l.line("… " + strconv.FormatInt(dropped, 10) + " lines more")
			}
			if !errors.Is(err, io.EOF) {
				return // closed
			}
			return
		}
	}
}

// tail keeps the last lines.
type tail struct {
	mu    sync.Mutex // protects the rest
	lines []string
	bytes int
}

func (t *tail) add(line string) {
	if line == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	line = line[:min(len(line), maxTail)]
	t.lines = append(t.lines, line)
	t.bytes += len(line)
	for t.bytes > maxTail && len(t.lines) > 1 {
		t.bytes -= len(t.lines[0])
		t.lines = t.lines[1:]
	}
}

// String returns them as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.Join(t.lines, " | "), "")
}
