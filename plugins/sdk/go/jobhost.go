// Package jobhost is the SDK for writing jobhost workers in Go. A worker is a
// main package that registers one handler:
//
//	package main
//
//	import jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
//
//	func init() {
//		jobhost.Handle(func(job *jobhost.Job) ([]byte, error) {
//			return append([]byte("hello, "), job.Input()...), nil
//		})
//	}
//
//	func main() {}
//
// The stock toolchain builds it:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o worker.wasm .
//
// main is never called: a worker is a library whose init functions run once,
// before its first job. Built for anything but wasip1 the package has an
// in-memory host instead, so that vet, editors and plain go test work; see
// [Run].
//
// The package avoids fmt, encoding/json and log/slog, which would double the
// size of a small worker; package joblog is for workers that log with slog.
package jobhost

import (
	"strconv"
	"time"
)

// Handler does one job. What it returns, after what it wrote to the job, is the
// result; nil is an empty result. The bytes are copied before the next job, so
// that a handler may return a buffer that it reuses, or a part of the input.
//
// An error fails the attempt, which is retried as the worker's retry policy
// says; wrap it with [Permanent] or return [Snooze] to say otherwise. A panic
// fails the attempt with code "panic" and leaves its stack in the job's log;
// the sandbox is then discarded, so that no later job sees what the panic left
// behind.
type Handler func(job *Job) ([]byte, error)

// handler is what jh_run calls.
var handler Handler

// Handle registers the handler of the worker. Call it once, from an init
// function: main doesn't run. For a worker with several entries see [Entry].
func Handle(h Handler) {
	if handler != nil {
		panic("jobhost: Handle is called twice; further entries are for Entry")
	}
	handler = h
}

// handle is the handler of workers that registered none.
func handle(job *Job) ([]byte, error) {
	if handler == nil {
		return nil, Permanent(errNoHandler)
	}
	return handler(job)
}

// run calls a handler and reports to the host what the result alone doesn't say.
func run(job *Job, h Handler) []byte {
	defer func() {
		if v := recover(); v != nil {
			job.host.fail(kindRetryable, panicText(v))
			// The host keeps what was just reported and replaces the sandbox,
			// since it ends here. The runtime writes the stack to the log.
			panic(v)
		}
	}()
	out, err := h(job)
	if err != nil {
		job.host.fail(failText(err))
		return nil
	}
	return out
}

// Job is the current attempt and its access to the host. It is valid until its
// handler returns.
type Job struct {
	input  []byte
	host   host
	serial uint32 // of jobs that this instance has run
}

// Input returns the payload. It may be modified, and is valid until the handler
// returns: copy what is kept for later jobs.
func (j *Job) Input() []byte { return j.input }

// Write appends to the result and makes the job an [io.Writer], for results
// that are better written than returned. The error is [ErrLimit] when the
// result gets too large; the attempt fails then.
func (j *Job) Write(p []byte) (int, error) {
	if e := j.host.Output(p); e != 0 {
		return 0, failed("write the result", e)
	}
	return len(p), nil
}

// Emit publishes data to all watchers of the job, at once, whatever happens to
// the attempt. The error is [ErrLimit] when data is larger than a result may be.
func (j *Job) Emit(data []byte) error { return failed("emit", j.host.Emit(data)) }

// Progress reports how far the attempt is, in units of the worker's choice; total 0 = unknown.
// It is cheap: the host passes on at most ten reports a second.
func (j *Job) Progress(done, total int64) { j.host.Progress(done, total) }

// Forever is what [Job.Remaining] returns when there is no deadline.
const Forever time.Duration = 1<<63 - 1

// Remaining returns the time left for the attempt: [Forever] without a
// deadline, 0 when it must end now because it was cancelled or is out of time.
// Long-running handlers should check it now and then, and return early on 0.
func (j *Job) Remaining() time.Duration {
	switch ms := j.host.Remaining(); {
	case ms == -1:
		return Forever
	case ms < 0:
		return 0
	default:
		return time.Duration(ms) * time.Millisecond
	}
}

// ID returns the id of the job.
func (j *Job) ID() string { return j.text("job.id") }

// Task returns which of the job's partitions this is, from 0.
func (j *Job) Task() int { return j.number("job.task") }

// Tasks returns how many partitions the job has, at least 1.
func (j *Job) Tasks() int { return j.number("job.tasks") }

// Attempt returns which attempt this is, from 1.
func (j *Job) Attempt() int { return j.number("job.attempt") }

// Priority returns the priority: critical, high, normal, low or background.
func (j *Job) Priority() string { return j.text("job.priority") }

// Worker returns the name of the worker in the manifest.
func (j *Job) Worker() string { return j.text("worker") }

// Trace returns the id of the workflow that the job is a step of, or "".
func (j *Job) Trace() string { return j.text("trace") }

// Config returns a value of the worker's config in the manifest, and whether
// it is there.
func (j *Job) Config(key string) (string, bool) {
	value, e := j.host.Info("config." + key)
	return value, e == 0
}

// Label returns a label of the job, and whether it is there.
func (j *Job) Label(key string) (string, bool) {
	value, e := j.host.Info("label." + key)
	return value, e == 0
}

// Secret returns a secret that the manifest grants the worker. The error is
// [ErrDenied] for any other, whether it exists or not.
func (j *Job) Secret(name string) (string, error) {
	value, e := j.host.Info("secret." + name)
	return value, failed("read secret "+name, e)
}

// text returns information that every job has.
func (j *Job) text(key string) string {
	value, _ := j.host.Info(key)
	return value
}

func (j *Job) number(key string) int {
	n, _ := strconv.Atoi(j.text(key))
	return n
}
