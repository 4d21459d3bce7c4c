// Package joblog connects log/slog to the log of the job. It is a separate
// package because slog adds 1 MB to a worker that has neither fmt nor
// encoding/json.
//
// With this in a worker, the output of slog.Info etc. goes to the log of the
// running job, also from libraries, as does that of package log:
//
//	func init() { slog.SetDefault(joblog.New(jobhost.Running)) }
//
// With the job itself, as in joblog.New(job), lines also appear in tests.
package joblog

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// New returns a logger for the log of a job. A line is the message and the
// attributes as key=value; the time and the level are left to the host.
func New(job *jobhost.Job) *slog.Logger { return slog.New(NewHandler(job)) }

// Handler is the [slog.Handler] behind [New]. It is safe for concurrent use.
type Handler struct {
	job  *jobhost.Job
	text slog.Handler // slog's own, which writes to out
	out  *buffer
}

// buffer is shared by a handler and all that were derived from it.
type buffer struct {
	mu   sync.Mutex // protects line, from begin to end of a Handle
	line bytes.Buffer
}

// NewHandler returns a handler for the log of a job.
func NewHandler(job *jobhost.Job) *Handler {
	out := new(buffer)
	// Enabled handles levels, by asking the host.
	text := slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: slog.Level(math.MinInt32)})
	return &Handler{job: job, text: text, out: out}
}

// Enabled implements [slog.Handler].
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return jobhost.Level(level) >= h.job.LogLevel()
}

// Handle implements [slog.Handler]. slog's own handler writes the attributes,
// and the message is put before them.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	bare := slog.NewRecord(time.Time{}, r.Level, "", 0)
	r.Attrs(func(a slog.Attr) bool {
		bare.AddAttrs(a)
		return true
	})
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.line.Reset()
	if err := h.text.Handle(ctx, bare); err != nil {
		return err
	}
	// A record without time and message always begins like this.
	attributes := bytes.TrimPrefix(h.out.line.Bytes(), []byte("level="+r.Level.String()+` msg=""`))
	h.job.Log(jobhost.Level(r.Level), r.Message+string(bytes.TrimRight(attributes, "\n")))
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.job, h.text.WithAttrs(attrs), h.out}
}

// WithGroup implements [slog.Handler].
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.job, h.text.WithGroup(name), h.out}
}
