// Package hostcall defines what a guest may ask for, in Go values: one method
// of [Attempt] for each call, whichever ABI carried it. Grants and limits are
// checked here and nowhere else.
package hostcall

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
)

// Attempt is one run of a task as the guest sees it: what it is given, what it
// may reach, and what it has produced so far. It is used by the goroutine that
// runs the guest; only Cancel may be called from others.
type Attempt struct {
	// The caller's identity, for [Attempt.Info].
	Job, Worker string
	Task, Tasks int
	Number      int // of the attempt, from 1
	Priority    jobhost.Priority
	Labels      map[string]string
	Trace       string
	// KeyPrefix begins the idempotency keys of its requests; empty = JOB/TASK, so
	// that the next attempt uses the same keys.
	KeyPrefix string

	// Entry is the export to call; empty = the plugin's default.
	Entry string
	// Input is the payload. It is not modified.
	Input []byte
	// LargeInput is the size of a payload that is not in Input but must be
	// opened with [Contents]; 0 = it is in Input.
	LargeInput int64
	// Deadline is when the attempt is stopped; zero = never.
	Deadline time.Time

	// Config and Secrets are what the manifest grants the worker.
	Config, Secrets map[string]string
	// MaySubmit lists the workers to which it may submit jobs.
	MaySubmit []string
	// MayWatch lists the workers whose jobs' states it may see.
	MayWatch []string

	Limits Limits
	// Services may be nil: then nothing is emitted, progress goes nowhere and
	// metrics are denied.
	Services Services

	cancelled atomic.Bool
	waits     atomic.Pointer[context.CancelFunc] // of a waiting call; nil = none
	onCancel  atomic.Pointer[func()]             // called by Cancel; nil = none
	output    []byte
	overflow  bool // output was refused, so the result is incomplete
	failure   *jobhost.Failure
	snooze    time.Duration
	log       logBuffer
	progress  progress
	submitted []child // numbered from 1
	ops       ops

	stream    io.Reader // of a payload that is not in Input, once reading has begun
	inputRead int64     // bytes of the payload read by ReadInput
	spill     io.Writer // receives the output; nil = it is in output
	spilled   int       // bytes written to spill
	lost      error     // error of stream or spill
	losing    string    // the operation that failed then
}

// child is a job that the attempt submitted.
type child struct {
	id   string
	when SubmitTime
}

// Reset clears the attempt but keeps its memory, so that one struct serves many
// attempts without allocating. Cancel must not be called for the old attempt
// any more.
func (a *Attempt) Reset() {
	output := a.output[:0]
	if cap(output) > keepOutput {
		output = nil
	}
	*a = Attempt{output: output, ops: ops{pending: a.ops.pending[:0]}}
}

// keepOutput is how much output memory a reused attempt keeps.
const keepOutput = 64 << 10

// Limits bound what an attempt may produce; 0 = nothing.
type Limits struct {
	OutputBytes int // of the result
	SpillBytes  int // of a result in memory; more goes to [Contents]; 0 = all is in memory
	LogBytes    int // of the log as a whole
	LineBytes   int // of one line of the log
	LogLevel    slog.Level

	OpenRequests int   // HTTP requests that it has open at one time
	Requests     int   // HTTP requests that it may send and defer
	RequestBytes int64 // of bodies of requests and responses together
}

// Services implements the calls that leave the sandbox. The host implements it
// with its other components. It is called by the goroutine that runs the guest, so
// an implementation that blocks holds up the guest and its deadline. It may also
// implement [KV], [Jobs], [Ops], [HTTP], [Contents], [States] and [Inbox].
type Services interface {
	// Emit publishes data on the output hub. It doesn't retain data.
	Emit(at *Attempt, data []byte)
	// Progress reports how far the attempt is. total 0 = unknown.
	Progress(at *Attempt, done, total int64)
	// Metric returns an id for a guest metric, for use with Observe; ids are
	// per worker. name may carry labels in braces: requests{code="200"}.
	Metric(at *Attempt, kind MetricKind, name string) (int32, Errno)
	// Observe adds to a counter, sets a gauge or observes for a histogram.
	Observe(at *Attempt, id int32, value float64) Errno
}

// MetricKind is the kind of a guest metric; the numbers are part of the ABI.
type MetricKind int32

// The kinds of guest metrics.
const (
	Counter   MetricKind = 1
	Gauge     MetricKind = 2
	Histogram MetricKind = 3
)
