package hostcall

import (
	"bytes"
	"log/slog"

	"github.com/jobhost/jobhost/internal/text"
)

// Levels of the log that the ABI defines; the numbers are those of package slog
// and part of the ABI. Others are rounded down.
const (
	LevelDebug = slog.LevelDebug // −4
	LevelInfo  = slog.LevelInfo  // 0
	LevelWarn  = slog.LevelWarn  // 4
	LevelError = slog.LevelError // 8
)

// logBuffer keeps the lines of one attempt, up to its limits.
type logBuffer struct {
	lines   []byte
	dropped int64
}

// Log writes a line: the name of the level, a space, and the message with
// everything escaped that could be mistaken for something else or control a
// terminal. One call is one line: newlines within it are escaped, those at its
// end removed, and tabs are four spaces. A line over [Limits].LineBytes is cut and marked. Once a line
// doesn't fit into what is left of LogBytes, it and all that follow are dropped
// and counted, so that the beginning of the log is kept. Lines below the level
// of the limits are ignored, and not counted.
func (a *Attempt) Log(level slog.Level, msg []byte) {
	if level < a.Limits.LogLevel {
		return
	}
	if far := a.far(); far != nil {
		far.Log(level, msg)
		return
	}
	l := &a.log
	if l.dropped > 0 {
		l.dropped++
		return
	}
	start := len(l.lines)
	l.lines = append(l.lines, levelName(level)...)
	l.lines = append(l.lines, ' ')
	if len(msg) <= a.Limits.LineBytes+maxNewlines {
		msg = trimNewlines(msg)
	}
	if bytes.IndexByte(msg, '\t') >= 0 && len(msg) <= a.Limits.LineBytes+maxNewlines {
		msg = bytes.ReplaceAll(msg, []byte("\t"), []byte("    "))
	}
	l.lines = text.AppendLine(l.lines, msg, a.Limits.LineBytes)
	l.lines = append(l.lines, '\n')
	if len(l.lines) > a.Limits.LogBytes {
		l.lines = l.lines[:start]
		l.dropped++
	}
}

// LogLevel returns the lowest level that is kept, so that a guest can save
// itself the rest.
func (a *Attempt) LogLevel() slog.Level { return a.Limits.LogLevel }

// TakeLog returns the lines so far, each ending with a newline, and how many
// were dropped, and resets the log. The lines belong to the caller; nil = none.
func (a *Attempt) TakeLog() (lines []byte, dropped int64) {
	lines, dropped = a.log.lines, a.log.dropped
	if len(lines) == 0 {
		lines = nil
	}
	a.log = logBuffer{}
	return lines, dropped
}

func levelName(level slog.Level) string {
	switch {
	case level < LevelInfo:
		return "debug"
	case level < LevelWarn:
		return "info"
	case level < LevelError:
		return "warn"
	}
	return "error"
}

// maxNewlines is how many bytes beyond the length of a line are searched for
// trailing newlines: a guest that passes gigabytes of them can't be stopped
// during the search.
const maxNewlines = 64 << 10

func trimNewlines(msg []byte) []byte {
	for len(msg) > 0 && (msg[len(msg)-1] == '\n' || msg[len(msg)-1] == '\r') {
		msg = msg[:len(msg)-1]
	}
	return msg
}
