package hosttest

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/host/workflow/course"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// Fake is a host in memory, for tests of what stands before a host. It has
// one worker, "test", with the entries of [Run]; what a task does is done at
// once, in the goroutine that makes it ready. It starts no goroutines of its
// own but those of fibers, only timers.
type Fake struct {
	jobhost.StateKeeper  // states
	jobhost.StateCleaner // states
	states               *taskstate.Keeper
	fibers               *fiber.Registry
	root                 *scope.Scope // of fibers

	cfg FakeConfig

	mu      sync.Mutex // protects the fields below
	jobs    map[string]*fakeJob
	order   []*fakeJob // by key
	lastKey int
	open    int // tasks
	closed  bool
	mode    jobhost.WorkerMode
	slots   int
	keys    map[string]fakeKey
	uploads map[string]*fakeUpload
	version int64 // of the last change of a key
	hub     fakeHub

	workflows fakeWorkflows
	paused    *time.Time // of the schedule
	lastJob   string     // of the schedule
}

var _ jobhost.Server = (*Fake)(nil)

// FakeConfig bounds a [Fake]. Zero values are defaults.
type FakeConfig struct {
	QueueCapacity int // open tasks; 0 = 10,000
	MaxPayload    int // bytes; 0 = 1 MiB
	Keep          int // jobs; the oldest ones that have ended make room; 0 = 10,000
	EventBuffer   int // events that a reader may lag behind; 0 = 1,024
	// States keeps the states of tasks; nil = in memory.
	States state.Store
	// Fibers bounds the fibers; its scope is the fake's.
	Fibers fiber.Config
}

// FakeWorker is the name of the fake's only worker.
const FakeWorker = "test"

// fakeJob is a job of a fake.
type fakeJob struct {
	key      int
	spec     jobhost.Spec // normalised
	created  time.Time
	ended    *time.Time
	done     chan struct{} // closed when it has ended
	tasks    []fakeTask
	failures []jobhost.Failure
	logs     []jobhost.AttemptLog

	workflow *fakeWorkflow // that it is a step of; nil = none
	run      course.Run    // of the step
	items    [][]byte      // payloads of the tasks; nil = all have that of the spec
}

// payload returns that of a task.
func (j *fakeJob) payload(task int) []byte {
	if j.items != nil {
		return j.items[task]
	}
	return j.spec.Payload
}

type fakeTask struct {
	jobhost.Task
	result []byte
	letter *jobhost.DeadLetter // since it died, until it dies again
	run    int                 // counts changes, so that timers of older ones do nothing
}

// NewFake returns an empty fake.
func NewFake(cfg FakeConfig) *Fake {
	for n, value := range map[*int]int{&cfg.QueueCapacity: 10_000, &cfg.MaxPayload: 1 << 20, &cfg.Keep: 10_000, &cfg.EventBuffer: 1024} {
		if *n <= 0 {
			*n = value
		}
	}
	if cfg.States == nil {
		cfg.States = statetest.NewMemory()
	}
	f := &Fake{
		cfg: cfg, jobs: map[string]*fakeJob{}, mode: jobhost.WorkerRunning, slots: 1,
		keys: map[string]fakeKey{}, uploads: map[string]*fakeUpload{}, workflows: fakeWorkflows{byID: map[string]*fakeWorkflow{}},
	}
	f.hub.buffer = cfg.EventBuffer
	f.newFibers()
	f.states = taskstate.New(taskstate.Config{Store: cfg.States, Jobs: f, Logger: slog.New(slog.DiscardHandler)})
	f.StateKeeper, f.StateCleaner = f.states, f.states
	return f
}

// Close ends all streams of events and of states, and all fibers; submits are refused from now on.
func (f *Fake) Close() {
	f.endFibers()
	f.states.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.hub.close()
}

// Submit implements [jobhost.Submitter].
func (f *Fake) Submit(_ context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	if err := spec.Check(); err != nil {
		return jobhost.Receipt{}, err
	}
	if len(spec.Payload) > f.cfg.MaxPayload {
		return jobhost.Receipt{}, problem(jobhost.CodeTooLarge, "payload", "the payload is larger than %d", f.cfg.MaxPayload)
	}
	normalise(&spec)
	f.mu.Lock()
	defer f.mu.Unlock()
	upload, err := f.redeemLocked(&spec)
	if err != nil {
		return jobhost.Receipt{}, err
	}
	switch {
	case f.closed:
		return jobhost.Receipt{}, problem(jobhost.CodeUnavailable, "", "the host is stopping")
	case spec.Worker != FakeWorker:
		return jobhost.Receipt{}, problem(jobhost.CodeNotFound, "worker", "there is no worker %q", spec.Worker)
	}
	if old := f.jobs[spec.ID]; old != nil {
		if !reflect.DeepEqual(old.spec, spec) {
			return jobhost.Receipt{}, problem(jobhost.CodeConflict, "id", "job %s is there with other content", spec.ID)
		}
		return jobhost.Receipt{ID: spec.ID, State: old.state(), Deduplicated: true}, nil
	}
	if old := f.uniqueLocked(&spec); old != nil {
		return jobhost.Receipt{ID: old.spec.ID, State: old.state(), Deduplicated: true}, nil
	}
	if to := spec.Callback.Worker; to != "" && to != FakeWorker {
		return jobhost.Receipt{}, problem(jobhost.CodeNotFound, "callback", "there is no worker %q", to)
	}
	if spec.Callback.URL != "" {
		return jobhost.Receipt{}, problem(jobhost.CodeDenied, "callback", "callbacks to URLs are not allowed")
	}
	if f.mode == jobhost.WorkerDraining {
		return jobhost.Receipt{}, problem(jobhost.CodeUnavailable, "worker", "worker %s is draining", spec.Worker)
	}
	if f.open+spec.Tasks > f.cfg.QueueCapacity {
		err := problem(jobhost.CodeExhausted, "worker", "the queue of worker %s is full", spec.Worker)
		err.RetryAfter = 250 * time.Millisecond
		return jobhost.Receipt{}, err
	}
	if upload != nil {
		if upload.taken {
			return jobhost.Receipt{}, problem(jobhost.CodeConflict, "payload_ref", "the upload belongs to another job")
		}
		upload.taken = true
	}
	job := f.addLocked(spec)
	state := job.state()
	for i := range job.tasks {
		f.scheduleLocked(job, i)
	}
	return jobhost.Receipt{ID: spec.ID, State: state}, nil
}

// SubmitBatch implements [jobhost.Submitter].
func (f *Fake) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers := make([]jobhost.Submitted, len(specs))
	for i := range specs {
		answers[i].Receipt, answers[i].Err = f.Submit(ctx, specs[i])
	}
	return answers, nil
}

// normalise fills in the defaults.
func normalise(s *jobhost.Spec) {
	if s.ID == "" {
		s.ID = jobhost.NewID()
	}
	if len(s.Payload) == 0 {
		s.Payload = nil
	}
	if len(s.Labels) == 0 {
		s.Labels = nil
	}
	s.Payload = slices.Clone(s.Payload)
	s.Priority = jobhost.PriorityAt(s.Priority.Level())
	s.RunAt = s.RunAt.UTC().Round(0)
	s.Tasks = max(s.Tasks, 1)
	if s.MaxAttempts == 0 {
		s.MaxAttempts = 3
	}
	if s.Timeout == 0 {
		s.Timeout = 30 * time.Second
	}
}

// addLocked adds a job with its tasks, not scheduled yet.
func (f *Fake) addLocked(spec jobhost.Spec) *fakeJob {
	return f.addJobLocked(&fakeJob{spec: spec})
}

func (f *Fake) addJobLocked(job *fakeJob) *fakeJob {
	now, spec := time.Now().UTC().Truncate(time.Millisecond), &job.spec
	f.lastKey++
	job.key, job.created, job.done, job.tasks = f.lastKey, now, make(chan struct{}), make([]fakeTask, spec.Tasks)
	ready, state := now.Add(spec.Delay), jobhost.Ready
	if !spec.RunAt.IsZero() {
		ready = spec.RunAt
	}
	if ready.After(now) {
		state = jobhost.Scheduled
	}
	for i := range job.tasks {
		job.tasks[i].Task = jobhost.Task{Index: i, State: state, ReadyAt: ready}
	}
	f.jobs[spec.ID] = job
	f.order = append(f.order, job)
	f.open += len(job.tasks)
	if len(f.order) > f.cfg.Keep && f.order[0].ended != nil {
		delete(f.jobs, f.order[0].spec.ID)
		f.order = f.order[1:]
	}
	f.tellLocked(job, jobhost.Event{Kind: jobhost.EventSubmitted, State: state})
	f.expireLocked(job)
	return job
}

func problem(code jobhost.Code, field, format string, args ...any) *jobhost.Error {
	return &jobhost.Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...), Hint: "this is a fake"}
}
