package fiberguest

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// logBudget bounds what a fiber writes to the host's log.
type logBudget struct {
	since   time.Time // when the current minute began
	bytes   int       // written in it
	dropped int64     // lines that were not written
}

// flush writes what the guest has logged to the host's log: per minute as much as
// the log of a job may have.
func (g *guest) flush() {
	lines, dropped := g.attempt.TakeLog()
	b := &g.log
	b.dropped += dropped
	if len(lines) == 0 && b.dropped == 0 {
		return
	}
	now := time.Now()
	if now.Sub(b.since) >= time.Minute {
		if b.dropped > 0 {
			g.cfg.Logger.Warn("fiber logs too much", g.keys(logkey.Count, b.dropped)...)
		}
		*b = logBudget{since: now}
	}
	for line := range bytes.Lines(lines) {
		if b.bytes += len(line); b.bytes > g.attempt.Limits.LogBytes {
			b.dropped++
			continue
		}
		level, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		g.cfg.Logger.Log(g.scope.Context(), levels[string(level)], "fiber", g.keys(logkey.Line, string(text))...)
	}
}

// levels maps the first word of a line to its level.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// keys are the attributes of every line about the fiber.
func (g *guest) keys(more ...any) []any {
	spec := g.fiber.Spec()
	return append([]any{logkey.Fiber, spec.ID, logkey.Worker, spec.Worker}, more...)
}
