package wasiabi

import (
	"bytes"
	"log/slog"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// stream logs a standard stream line by line. It keeps at most two lines,
// truncated to what the log would accept.
type stream struct {
	level slog.Level
	line  []byte // incomplete
	last  []byte // the last one that wasn't blank
}

func (s *stream) begin(level slog.Level) {
	s.level, s.line, s.last = level, s.line[:0], s.last[:0]
}

// write accepts everything, so that a guest can't tell when the log is full.
func (s *stream) write(at *hostcall.Attempt, p []byte) {
	for {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		// One byte more than the log accepts, so that it notices that there was more.
		room := max(at.Limits.LineBytes+1-len(s.line), 0)
		s.line = append(s.line, line[:min(len(line), room)]...)
		if !whole {
			return
		}
		s.end(at)
		p = rest
	}
}

func (s *stream) end(at *hostcall.Attempt) {
	at.Log(s.level, s.line)
	if len(bytes.TrimSpace(s.line)) > 0 {
		s.line, s.last = s.last, s.line
	}
	s.line = s.line[:0]
}

// flush logs an incomplete line.
func (s *stream) flush(at *hostcall.Attempt) {
	if len(s.line) > 0 {
		s.end(at)
	}
}
