package jobhost

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Bounds of fibers that no configuration changes.
const (
	MaxFiberMessage = 1 << 20 // bytes of a fiber's initial input, of one message to it, and of one from it
	MaxFibers       = 100_000 // at one time
)

// FiberStatus is a stage in the life of a fiber.
//
//	starting ─► idle ⇄ running ─► completed | failed | killed
//	             paused: no more input is taken, whatever the fiber does
type FiberStatus string

// The statuses. Those after FiberPaused are ends.
const (
	FiberStarting  FiberStatus = "starting"  // it waits for a permit, or for its next start
	FiberIdle      FiberStatus = "idle"      // it waits for input
	FiberRunning   FiberStatus = "running"   // its guest works
	FiberPaused    FiberStatus = "paused"    // it takes no input from outside
	FiberCompleted FiberStatus = "completed" // its guest returned
	FiberFailed    FiberStatus = "failed"    // its guest failed: see [Fiber.Failure]
	FiberKilled    FiberStatus = "killed"    // it was interrupted, or the host stopped
)

// FiberStatuses lists all statuses.
func FiberStatuses() []FiberStatus {
	return []FiberStatus{FiberStarting, FiberIdle, FiberRunning, FiberPaused, FiberCompleted, FiberFailed, FiberKilled}
}

// Ended reports whether the status is terminal.
func (s FiberStatus) Ended() bool {
	return s == FiberCompleted || s == FiberFailed || s == FiberKilled
}

// RestartWhen says after which ends a fiber is restarted.
type RestartWhen string

// The restart policies.
const (
	RestartNever     RestartWhen = "never"
	RestartOnFailure RestartWhen = "on_failure"
	RestartAlways    RestartWhen = "always" // except after an interrupt
)

// RestartPolicy says when a fiber that has ended is restarted; its subscribers
// and its waiting input are kept. Zero values mean the defaults.
type RestartPolicy struct {
	When RestartWhen `json:"when,omitempty"` // default never
	// Initial is the delay before the first restart, default 1 s; it doubles with
	// each further restart up to Max, default 1 min.
	Initial Duration `json:"initial,omitempty"`
	Max     Duration `json:"max,omitempty"`
	// Intensity is how many restarts are allowed Within a time, default 5
	// within 1 min; at the next one the fiber fails permanently.
	Intensity int      `json:"intensity,omitempty"`
	Within    Duration `json:"within,omitempty"`
}

// OrDefaults returns the policy with zero values replaced by the defaults.
func (p RestartPolicy) OrDefaults() RestartPolicy {
	if p.When == "" {
		p.When = RestartNever
	}
	if p.Initial == 0 {
		p.Initial = Duration(time.Second)
	}
	if p.Max == 0 {
		p.Max = max(Duration(time.Minute), p.Initial)
	}
	if p.Intensity == 0 {
		p.Intensity = 5
	}
	if p.Within == 0 {
		p.Within = Duration(time.Minute)
	}
	return p
}

// Check reports everything that is wrong with the policy.
func (p RestartPolicy) Check() error {
	p = p.OrDefaults()
	var when error
	if !slices.Contains([]RestartWhen{RestartNever, RestartOnFailure, RestartAlways}, p.When) {
		when = invalid("restart.when", "%s is not a restart policy; use never, on_failure or always", clip(string(p.When)))
	}
	var most error
	if p.Max < p.Initial {
		most = invalid("restart.max", "max %v is less than initial %v", p.Max, p.Initial)
	}
	return errors.Join(when, most,
		inRange("restart.max", p.Max, 0, Duration(MaxDelay)),
		inRange("restart.initial", p.Initial, Duration(time.Millisecond), Duration(MaxTimeout)),
		inRange("restart.intensity", p.Intensity, 1, 1_000_000),
		inRange("restart.within", p.Within, Duration(time.Second), Duration(MaxDelay)),
	)
}

// CheckFiber returns an error with code [CodeInvalid] unless id is a valid fiber id:
// like a job's, but required.
func CheckFiber(id string) error {
	if len(id) <= MaxIDBytes && isName(id, true) {
		return nil
	}
	message := clip(id) + " is not the id of a fiber"
	if id == "" {
		message = "a fiber needs an id"
	}
	return &Error{
		Code: CodeInvalid, Field: "id", Message: message,
		Hint: "use 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter or digit",
	}
}

// FiberSpec is a fiber to start.
type FiberSpec struct {
	// ID names the fiber; see [CheckFiber].
	ID     string `json:"id"`
	Worker string `json:"worker"`
	// Entry is the export to call; empty = the worker's own.
	Entry string `json:"entry,omitempty"`
	// Init is what the guest reads as its input, up to [MaxFiberMessage].
	Init    []byte            `json:"init,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Restart RestartPolicy     `json:"restart,omitzero"`
}

// Check reports everything that is wrong with the spec.
func (s *FiberSpec) Check() error {
	var init error
	if len(s.Init) > MaxFiberMessage {
		init = tooLong("init", len(s.Init))
	}
	return errors.Join(CheckFiber(s.ID), CheckWorker(s.Worker), checkText("entry", s.Entry, MaxEntryBytes), init, checkLabels(s.Labels), s.Restart.Check())
}

// tooLong returns the error for more than [MaxFiberMessage] bytes.
func tooLong(field string, n int) error {
	return &Error{Code: CodeTooLarge, Field: field, Message: fmt.Sprintf("%s has %d bytes; there may be %d", field, n, MaxFiberMessage)}
}

// Fiber describes a fiber and its current state.
type Fiber struct {
	ID     string            `json:"id"`
	Worker string            `json:"worker"`
	Entry  string            `json:"entry,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status FiberStatus       `json:"status"`
	// CreatedAt is when the start was requested, StartedAt when the guest last began.
	CreatedAt time.Time  `json:"created_at"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Restarts  int        `json:"restarts"`
	// Waiting counts the messages waiting in its queue, Received all that it
	// was ever sent, Emitted those that it published.
	Waiting  int    `json:"waiting"`
	Received uint64 `json:"received"`
	Emitted  uint64 `json:"emitted"`
	// Subscribers counts its current watchers.
	Subscribers int `json:"subscribers"`
	// Failure says why it failed or was killed, or why it was last restarted.
	Failure *Failure `json:"failure,omitempty"`
	// Result is what its guest returned, once completed.
	Result []byte `json:"result,omitempty"`
}

// FiberOutput is something that a fiber published.
type FiberOutput struct {
	// Seq counts the outputs of the fiber from 1.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Data []byte    `json:"data"`
}

// FiberFilter selects fibers for a list.
type FiberFilter struct {
	Worker string      // empty = all
	Status FiberStatus // empty = all
	// Cursor continues a list: the Next of the page before.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// Check reports everything that is wrong with the filter.
func (f *FiberFilter) Check() error {
	var worker, status error
	if f.Worker != "" {
		worker = CheckWorker(f.Worker)
	}
	if f.Status != "" && !slices.Contains(FiberStatuses(), f.Status) {
		status = invalid("status", "%s is not a status of fibers", clip(string(f.Status)))
	}
	return errors.Join(worker, status, checkText("cursor", f.Cursor, MaxIDBytes), inRange("limit", f.Limit, 0, MaxPage))
}

// FiberPage is one page of a list of fibers, by id, without their results.
type FiberPage struct {
	Fibers []Fiber `json:"fibers"`
	// Next is the cursor of the page that follows; empty on the last one.
	Next string `json:"next,omitempty"`
}

// FiberQuery selects outputs of a fiber.
type FiberQuery struct {
	ID string
	// After asks for the outputs after this Seq first, as far as they are
	// remembered; 0 with Replay = all that are remembered.
	After uint64
	// Replay asks for past outputs; without Replay and After there are only future
	// ones.
	Replay bool
	// CreatedAt, if set, is the creation time of the fiber that is meant: if
	// another fiber has its ID by now, the answer is that the one meant has ended.
	CreatedAt time.Time
}

// FiberRunner starts fibers and reports on them. A fiber that does not exist,
// and is not among those that ended recently, is not_found.
type FiberRunner interface {
	// StartFiber returns when the fiber runs. If it already runs, it is returned unchanged if
	// it was started with the same spec; otherwise that is a conflict. At the limit of running
	// fibers it waits for its turn or answers exhausted, depending on the host's configuration.
	// Errors: also invalid, not_found (no such worker), unavailable.
	StartFiber(ctx context.Context, spec FiberSpec) (Fiber, error)
	Fiber(ctx context.Context, id string) (Fiber, error)
	// Fibers lists fibers, including those that have ended and are still
	// remembered.
	Fibers(ctx context.Context, filter FiberFilter) (FiberPage, error)
}

// FiberTalker passes messages to and from fibers.
type FiberTalker interface {
	// SendFiber puts a message into a fiber's input queue. Errors, in this order:
	// not_found (no such fiber, or it has ended), conflict (it is paused), exhausted
	// (the queue is full). With wait, it waits for room instead of the last.
	SendFiber(ctx context.Context, id string, message []byte, wait bool) error
	// WatchFiber yields what a fiber publishes, until ctx ends, the fiber ends or
	// the reader is too slow; the last pair carries an error that says which:
	// [ErrFiberEnded] when the fiber has completed.
	WatchFiber(ctx context.Context, query FiberQuery) iter.Seq2[FiberOutput, error]
}

// FiberController pauses, resumes and interrupts fibers. Asking for what is
// already the case is not an error.
type FiberController interface {
	// PauseFiber keeps the fiber from accepting input from outside; what is
	// already in its queue is processed.
	PauseFiber(ctx context.Context, id string) (Fiber, error)
	ResumeFiber(ctx context.Context, id string) (Fiber, error)
	// InterruptFiber asks the fiber to end and returns at once. Its guest sees
	// that it is cancelled and is stopped after a grace period.
	InterruptFiber(ctx context.Context, id string) (Fiber, error)
}

// ErrFiberEnded ends the outputs of a fiber that has completed. For fibers that
// failed or were killed the last error wraps it.
var ErrFiberEnded error = &Error{Code: CodeNotFound, Message: "the fiber has ended"}
