package wasm

import (
	"bytes"
	"log/slog"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// stdio puts what a guest writes to its standard streams into the log of the
// attempt, line by line: output at info, errors at warn.
type stdio struct{ out, err stream }

func newStdio() *stdio {
	return &stdio{out: stream{level: hostcall.LevelInfo}, err: stream{level: hostcall.LevelWarn}}
}

// enter makes the streams those of an attempt.
func (s *stdio) enter(at *hostcall.Attempt) { s.out.at, s.err.at = at, at }

// flush logs the lines that have no end yet.
func (s *stdio) flush() {
	s.out.flush()
	s.err.flush()
}

// stream is one of the streams. It keeps at most one line, of which it cuts off
// what the log would not take.
type stream struct {
	at    *hostcall.Attempt
	level slog.Level
	line  []byte
}

// Write implements [io.Writer]. It takes everything, so that a guest can't
// tell a full log.
func (s *stream) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		// One byte more than the log takes, so that it sees that there was more.
		room := max(s.at.Limits.LineBytes+1-len(s.line), 0)
		s.line = append(s.line, line[:min(len(line), room)]...)
		if !whole {
			return n, nil
		}
		s.at.Log(s.level, s.line)
		s.line = s.line[:0]
		p = rest
	}
}

func (s *stream) flush() {
	if len(s.line) > 0 {
		s.at.Log(s.level, s.line)
		s.line = s.line[:0]
	}
}
