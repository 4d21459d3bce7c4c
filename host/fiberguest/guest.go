// Package fiberguest runs guests as fibers: it does for [fiber] what the slots of package pool do for the
// queue.
//
//	Start ─► a reference to the worker's current version ─► a sandbox of its own ─► one attempt without a deadline
//
// A fiber is not a task: it has no lease, and nothing it does waits for its success. Changes of keys and
// submitted jobs are durable at once, and its log goes to the host's log.
package fiberguest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
)

// Config configures the guests of a worker's fibers.
type Config struct {
	// Acquire returns the worker's current version for one run of a fiber; false = there is none.
	Acquire func() (*pool.Ref, bool)
	Queue   *queue.Queue
	// Services implements the calls that are the same as in jobs.
	Services hostcall.Services
	// Jobs are what guests may wait for, States what they report and see; nil = none.
	Jobs   pending.Jobs
	States *taskstate.Keeper
	// Journal records the running fibers; nil = no record.
	Journal *journal.Journal
	// Apart reports whether a fiber runs in a process of its own, because it was running when the last host
	// crashed by its own doing; nil = none does.
	Apart func(id string) bool
	// Ran is called after every run; may be nil.
	Ran    func(*runtime.Result)
	Logger *slog.Logger
}

// StatesRun separates the states of fibers from those of jobs with the same ids, to which they are unrelated.
const StatesRun = jobhost.ReservedTags + "fiber"

// Body returns the body of a worker's fibers.
func Body(cfg Config) fiber.Body {
	return func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		ref, ok := cfg.Acquire()
		if !ok {
			return nil, unavailable(f)
		}
		defer ref.Release()
		g := &guest{Services: cfg.Services, cfg: cfg, fiber: f, ref: ref, scope: scope.From(ctx)}
		g.inbox = pending.NewStream(&inbox{guest: g})
		return g.run(ctx)
	}
}

// unavailable is the failure of a fiber whose worker is gone.
func unavailable(f *fiber.Fiber) *jobhost.Failure {
	return &jobhost.Failure{
		Code: jobhost.FailStart, Category: jobhost.CategorySystem, Severity: jobhost.SeverityError, Retryable: true,
		Message: "worker " + f.Spec().Worker + " is not loaded",
	}
}

// guest is one run of a fiber. It is used by the fiber's goroutine.
type guest struct {
	hostcall.Services // of the host; the guest adds what differs in fibers

	cfg     Config
	fiber   *fiber.Fiber
	ref     *pool.Ref
	scope   *scope.Scope // of the run
	attempt hostcall.Attempt
	inbox   *pending.Stream
	states  *taskstate.Guest // nil = not used yet
	log     logBudget
	jobs    int // submitted so far
}

func (g *guest) run(ctx context.Context) (result []byte, failure *jobhost.Failure) {
	at := &g.attempt
	g.prepare()
	plugin, place, failure := g.plugin(ctx)
	if failure != nil {
		return nil, failure
	}
	noted := g.cfg.Journal.Begin(&journal.Task{
		Worker: at.Worker, Job: at.Job, Fiber: true, Place: place, Number: at.Number, Began: time.Now(),
	}, journal.Running)
	defer noted.End()
	sandbox := runtime.NewSandbox(plugin, g.cfg.Ran)
	defer func() {
		g.flush()
		if g.states != nil {
			g.states.Close()
		}
		if err := sandbox.Close(context.WithoutCancel(ctx)); err != nil {
			g.cfg.Logger.Warn("sandbox does not close", g.keys(logkey.Error, err)...)
		}
	}()
	g.fiber.OnInterrupt(at.Cancel)
	defer g.fiber.OnInterrupt(nil)
	began := time.Now()
	outcome := sandbox.Run(ctx, at)
	if failure = failureOf(&outcome); failure != nil {
		failure.StartedAt, failure.EndedAt = began.UTC(), time.Now().UTC()
		failure.Attempt = at.Number
	}
	return outcome.Output, failure
}

// plugin returns the plugin that the fiber runs on, and where that is.
func (g *guest) plugin(ctx context.Context) (runtime.Plugin, journal.Place, *jobhost.Failure) {
	if g.ref.Apart == nil || g.cfg.Apart == nil || !g.cfg.Apart(g.attempt.Job) {
		return g.ref.Plugin, g.ref.Place, nil
	}
	plugin, err := g.ref.Apart.Plugin(ctx)
	if err != nil {
		return nil, 0, &jobhost.Failure{
			Code: jobhost.FailStart, Category: jobhost.CategorySystem, Severity: jobhost.SeverityError, Retryable: true,
			Message: "it was under way when the host died, and there is no process apart that it could run in",
		}
	}
	return plugin, journal.Process, nil
}

// prepare sets up the attempt of the run.
func (g *guest) prepare() {
	spec, v := g.fiber.Spec(), &g.ref.Version
	at := &g.attempt
	at.Job, at.Worker, at.Tasks = spec.ID, spec.Worker, 1
	at.Number = g.fiber.Restarts() + 1
	at.Priority, at.Labels = jobhost.Normal, spec.Labels
	at.KeyPrefix = spec.ID + "/" + uuid.NewString()
	at.Entry, at.Input = spec.Entry, spec.Init
	at.Config, at.Secrets, at.MaySubmit, at.MayWatch = v.Config, v.Secrets, v.MaySubmit, v.MayWatch
	at.Limits, at.Services = v.Limits, g
	at.Limits.OutputBytes = min(at.Limits.OutputBytes, jobhost.MaxFiberMessage)
	at.Limits.SpillBytes = 0
}

// failureOf returns why a fiber has not completed; nil = it has.
func failureOf(o *jobhost.Outcome) *jobhost.Failure {
	switch o.Kind {
	case jobhost.OutcomeSucceeded:
		return nil
	case jobhost.OutcomeFailed:
		return o.Failure
	case jobhost.OutcomeSnoozed:
		return fault(jobhost.CategoryValidation, "a fiber can't snooze: it waits for what is to come")
	}
	return fault(jobhost.CategorySystem, "the fiber was stopped")
}

func fault(category jobhost.Category, message string) *jobhost.Failure {
	return &jobhost.Failure{Code: "stopped", Category: category, Severity: jobhost.SeverityError, Message: message, Retryable: category.Retryable()}
}

// Emit publishes the guest's output on the fiber's hub.
func (g *guest) Emit(at *hostcall.Attempt, data []byte) {
	if err := g.fiber.Emit(append([]byte(nil), data...)); err != nil {
		at.Log(hostcall.LevelWarn, []byte("emit: "+err.Error()))
	}
}

// Progress does nothing: a fiber has no goal to reach.
func (*guest) Progress(*hostcall.Attempt, int64, int64) {}

var (
	_ hostcall.Ops    = (*guest)(nil)
	_ hostcall.Inbox  = (*guest)(nil)
	_ hostcall.HTTP   = (*guest)(nil)
	_ hostcall.KV     = (*guest)(nil)
	_ hostcall.Jobs   = (*guest)(nil)
	_ hostcall.States = (*guest)(nil)
)

// After implements [hostcall.Ops].
func (*guest) After(_ *hostcall.Attempt, d time.Duration) hostcall.Pending { return pending.After(d) }

// Await implements [hostcall.Ops].
func (g *guest) Await(_ *hostcall.Attempt, job string) (hostcall.Ending, error) {
	return pending.Await(g.scope, g.cfg.Jobs, job)
}

// Wait implements [hostcall.Ops]. A fiber that waits for its input is idle, whatever else it waits for.
func (g *guest) Wait(ctx context.Context, list []hostcall.Pending) int {
	if ctx.Err() != nil {
		return pending.Wait(ctx, list) // it only looks
	}
	g.flush()
	if slices.Contains(list, hostcall.Pending(g.inbox)) {
		g.fiber.Waiting(true)
		defer g.fiber.Waiting(false)
	}
	return pending.Wait(ctx, list)
}

// Receive implements [hostcall.Inbox].
func (g *guest) Receive(*hostcall.Attempt) hostcall.Stream { return g.inbox }

// inbox is the fiber's input. It implements [pending.Source].
type inbox struct{ guest *guest }

// Ready implements [pending.Source].
func (in *inbox) Ready() bool {
	f := in.guest.fiber
	if f.Ready() {
		return true
	}
	f.Ring(in.guest.inbox.Ring) // rings at once if a message has arrived since
	return false
}

// Next implements [pending.Source].
func (in *inbox) Next() ([]byte, bool, error) {
	in.guest.flush() // a guest that is always busy never waits
	return in.guest.fiber.Take()
}

// Close implements [pending.Source]. A dropped inbox may be asked for again.
func (in *inbox) Close() { in.guest.fiber.Ring(nil) }

// Send implements [hostcall.HTTP].
func (g *guest) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	return pending.Send(g.ref.HTTP, r)
}

// Defer implements [hostcall.HTTP].
func (*guest) Defer(*hostcall.Attempt, *hostcall.HTTPRequest, string, []byte) (string, error) {
	return "", &jobhost.Error{
		Code: jobhost.CodeDenied, Message: "a fiber defers no requests, since it has no success to send them with",
		Hint: "send the request and wait for it, or submit a job that does",
	}
}

// SubmitJob implements [hostcall.Jobs].
func (g *guest) SubmitJob(at *hostcall.Attempt, spec *jobhost.Spec, when hostcall.SubmitTime) (string, error) {
	if when != hostcall.SubmitNow {
		return "", &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "when", Message: "a fiber has no success to submit jobs with", Hint: "submit it now",
		}
	}
	if g.jobs >= maxJobs {
		return "", &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the fiber has submitted too many jobs", Hint: "start it again"}
	}
	job := *spec
	job.Payload = append([]byte(nil), spec.Payload...)
	ctx, done := bounded()
	defer done()
	receipt, err := g.cfg.Queue.Submit(ctx, job)
	if err != nil {
		return "", shown(err)
	}
	g.jobs++
	return receipt.ID, nil
}

// maxJobs bounds the jobs that one run of a fiber submits: each is identified by a number.
const maxJobs = 100_000

// bounded returns a context for a call to the store, which has no other deadline.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Second)
}

// shown converts an error for the guest.
func shown(err error) error {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return &jobhost.Error{Code: e.Code, Field: e.Field, Message: e.Message, Hint: e.Hint}
	}
	return &jobhost.Error{Code: jobhost.CodeInternal, Message: "the host has a fault; its log says more"}
}

// guestStates returns what the fiber reports and sees.
func (g *guest) guestStates() (*taskstate.Guest, error) {
	if g.cfg.States == nil {
		return nil, taskstate.ErrNone
	}
	if g.states == nil {
		g.states = g.cfg.States.Guest(state.Job{ID: g.fiber.ID(), Run: StatesRun}, 0, 1)
	}
	return g.states, nil
}

// SetState implements [hostcall.States].
func (g *guest) SetState(ctx context.Context, _ *hostcall.Attempt, s jobhost.TaskState) error {
	states, err := g.guestStates()
	if err != nil {
		return err
	}
	return states.Set(ctx, s)
}

// State implements [hostcall.States].
func (g *guest) State(ctx context.Context, _ *hostcall.Attempt, q hostcall.StateQuery) (jobhost.TaskState, error) {
	states, err := g.guestStates()
	if err != nil {
		return jobhost.TaskState{}, err
	}
	return states.State(ctx, q)
}

// WatchState implements [hostcall.States].
func (g *guest) WatchState(ctx context.Context, _ *hostcall.Attempt, q hostcall.StateQuery) (hostcall.Stream, error) {
	states, err := g.guestStates()
	if err != nil {
		return nil, err
	}
	return states.Watch(ctx, q)
}

// WorkerOf implements [hostcall.States].
func (g *guest) WorkerOf(ctx context.Context, job string) (string, error) {
	if g.cfg.States == nil {
		return "", taskstate.ErrNone
	}
	return g.cfg.States.WorkerOf(ctx, job)
}
