//go:build !wasip1

package jobhost

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Attempt is what [Run] gives to a handler. Zero values mean what a plain job
// has.
type Attempt struct {
	Input []byte
	ID    string // empty = "job"
	// Worker is the worker's name; empty = "worker".
	Worker string
	Task   int
	Tasks  int // 0 = 1
	Number int // of the attempt; 0 = 1
	// Priority by name; empty = "normal".
	Priority string
	Trace    string
	// Config, Secrets and Labels are the existing ones; there are no others.
	Config, Secrets, Labels map[string]string
	// Keys are the worker's keys and values before the attempt.
	Keys map[string]string
	// MaySubmit lists the workers to which the job may submit.
	MaySubmit []string
	// HTTP answers requests at once, on the goroutine that sends; nil = the worker
	// has no network access. An error of type [*ResponseError] is returned as the
	// answer, an [Errno] by Send; any other is a connection failure. Neither
	// response nor error = there is never an answer.
	HTTP func(Request) (*Response, error)
	// Ended holds the reports of ended jobs, by id; others don't end.
	Ended map[string]string
	// Reports are the states that other tasks report, and tasks of other jobs that the
	// worker may watch; it may watch no others.
	Reports []Report
	// Messages are sent to the fiber, after which its inbox is closed; nil = the
	// attempt is not a fiber's.
	Messages []Message
	// Remaining is the time left for the attempt; 0 = no deadline, negative = it is
	// over, or cancelled. The time doesn't pass except in waits, which return
	// immediately: a timer is ready as soon as nothing else is.
	Remaining time.Duration
	// LogLevel is the lowest level that is kept; zero = info.
	LogLevel Level
}

// Result is what a handler did in [Run].
type Result struct {
	// Output is what was written to the job, followed by what was returned.
	Output []byte
	// Err is the error that was returned, as it is.
	Err error
	// Logs are the lines of the log, such as "info 3 rows".
	Logs    []string
	Emitted [][]byte
	// Observed are the values of each metric in order, by its name as in
	// requests{class="5xx"}.
	Observed map[string][]float64
	// Keys are the worker's keys and values after the attempt: unchanged, if it failed.
	Keys map[string]string
	// Submitted are the resulting jobs: those of SubmitNow and, if the attempt
	// succeeded, those of Submit.
	Submitted []string // their texts, as in docs/abi.md
	// Requests are those that were sent, and Deferred those that the host is to
	// send, if the attempt succeeded.
	Requests []Sent
	Deferred []Deferred
	// States are those that the handler has set.
	States []State
	// Done and Total are the last progress.
	Done, Total int64
}

// Run runs a handler in memory, for tests with plain go test. It does not exist
// in wasm. A panic of the handler is not recovered, so that the test sees it.
func Run(h Handler, at Attempt) *Result {
	f := &fake{at: at, result: Result{Observed: map[string][]float64{}}, keys: newKeys(at.Keys), ops: map[int32]*fakeOp{}}
	f.board = newBoard(&f.at)
	job := &Job{input: slices.Clone(at.Input), host: host{f}}
	out := run(job, func(job *Job) ([]byte, error) {
		out, err := h(job)
		f.result.Err = err
		return out, err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	if f.result.Err != nil {
		f.result.Output = nil
	} else {
		f.result.Output = append(f.result.Output, out...)
	}
	return &f.result
}

// Entry is only useful in wasm, where the host calls exports; tests call [Run].
func Entry(uint32, Handler) uint64 { panic("jobhost: Entry works in wasm only; use Run in tests") }

// fake is the in-memory host.
type fake struct {
	at Attempt

	mu       sync.Mutex // protects what follows
	result   Result
	metrics  []string // by id
	keys     map[string]fakeKey
	asked    []fakeSubmit      // by number, from 1
	ops      map[int32]*fakeOp // by number
	opened   int32
	clock    time.Duration // since the beginning of the attempt
	idle     time.Duration // time since something arrived
	board    []fakeState   // by their time
	inbox    int32         // its handle; 0 = not requested
	notified bool          // the handler knows that the attempt is cancelled
}

func (h *fake) Output(p []byte) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Output = append(h.result.Output, p...)
	return 0
}

// fail does nothing: Run returns the error itself.
func (h *fake) Info(key string) (string, Errno) {
	at := &h.at
	if group, name, ok := strings.Cut(key, "."); ok && group != "job" {
		if group == "child" {
			return h.child(name)
		}
		values := map[string]map[string]string{"config": at.Config, "secret": at.Secrets, "label": at.Labels}[group]
		if value, ok := values[name]; ok {
			return value, 0
		}
		if group == "secret" {
			return "", ErrDenied
		}
		return "", ErrNotFound
	}
	return map[string]string{
		"job.id":       cmp.Or(at.ID, "job"),
		"job.task":     strconv.Itoa(at.Task),
		"job.tasks":    strconv.Itoa(cmp.Or(at.Tasks, 1)),
		"job.attempt":  strconv.Itoa(cmp.Or(at.Number, 1)),
		"job.priority": cmp.Or(at.Priority, "normal"),
		"worker":       cmp.Or(at.Worker, "worker"),
		"trace":        at.Trace,
	}[key], 0
}

func (h *fake) Emit(p []byte) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Emitted = append(h.result.Emitted, slices.Clone(p))
	return 0
}

func (h *fake) Log(level Level, text string) {
	if level < h.LogLevel() {
		return
	}
	line := levelName(level) + " " + strings.TrimRight(text, "\r\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Logs = append(h.result.Logs, line)
}

func (h *fake) LogLevel() Level { return h.at.LogLevel }

// levelName is the host's name for a level.
func levelName(level Level) string {
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

func (h *fake) Metric(_ int32, name string) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := slices.Index(h.metrics, name)
	if id < 0 {
		id = len(h.metrics)
		h.metrics = append(h.metrics, name)
	}
	return int32(id)
}

func (h *fake) Observe(id int32, value float64) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := h.metrics[id]
	h.result.Observed[name] = append(h.result.Observed[name], value)
	return 0
}

func (h *fake) Progress(done, total int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Done, h.result.Total = done, total
}

func (h *fake) Remaining() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch left := h.at.Remaining - h.clock; {
	case h.at.Remaining == 0:
		return -1
	case left <= 0:
		return int64(ErrStopped)
	default:
		return int64((left + time.Millisecond - 1) / time.Millisecond)
	}
}

func entropy(p []byte) { _, _ = rand.Read(p) }
