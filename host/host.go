// Package host is the job server: it joins the pillars (runtime, state,
// netproxy) to the durable queue, admits jobs, runs them in pools of
// sandboxes, settles them and publishes what happens.
//
// A host's life is a tree of scopes: the host, its workers, their tasks.
// Stopping walks it from the outside in: no more jobs are admitted, running
// tasks may finish for a while, what is left is stopped and goes back to the
// queue, and then everything is closed in the reverse order of its opening.
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/host/workflow"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// Host is a job server. [Host.Server] is what can be asked of it while it runs.
type Host struct {
	cfg Config
	hub *hub.Hub[jobhost.Event]

	workers []settings // those to start with, the host's own included; nil once they run

	mu    sync.Mutex // protects state and ran
	state State
	ran   bool

	started chan struct{}    // closed when the start is over, well or not
	fault   op.Future[error] // the first fault of a worker's scope
	leaving context.Context  // ends when the host begins to drain
	leave   context.CancelCauseFunc

	reloading *op.Semaphore  // taken while a reload is under way
	swap      sync.Mutex     // held while versions are swapped, and while draining begins
	loads     map[string]int // how often each worker was loaded; protected by reloading

	states *taskstate.Keeper // nil when no states are kept
	// fiberStarts are the starts of [Fibers.Start], by id; protected by reloading.
	fiberStarts map[string]fiberStart

	loading loading // what a start or a reload is waiting for
	held    strikes // of workers that have ended a host

	running atomic.Pointer[running] // nil until the start has opened all pieces
	hooks   hooks
}

// worker is a loaded plugin with its pool.
type worker struct {
	cfg     *settings
	info    runtime.Info
	load    int // which one it is, from 1
	since   time.Time
	pool    *pool.Pool
	scope   *scope.Scope // of the pool
	metrics *metrics.Worker
	// fallible is a plugin that may lose what it needs to run anything; nil = it can't.
	fallible runtime.Fallible
	// quarantine is why it doesn't run in the process of the host; nil = no such reason.
	quarantine *quarantine
}

// New returns a host; Run runs it.
func New(cfg Config) (*Host, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("configure host: %w", err)
	}
	cfg.setDefaults()
	h := &Host{
		cfg:     cfg,
		hub:     newHub(func() { cfg.Metrics.LimitHit(metrics.LimitReader) }),
		started: make(chan struct{}),

		reloading: op.NewSemaphore(1),
		loads:     map[string]int{},

		fiberStarts: map[string]fiberStart{},
	}
	h.workers = withOwn(h.cfg.Workers, h.cfg.Webhook)
	h.states = h.newStates()
	h.leaving, h.leave = context.WithCancelCause(context.Background())
	return h, nil
}

const (
	eventReplay = 8192 // events that a reconnecting reader can catch up on
	eventBuffer = 1024 // events that a reader may lag behind
	// eventBufferBytes is what they may refer to: there are hundreds of readers, and each
	// may hold others.
	eventBufferBytes = 1 << 20
	// eventBudget is what all of them may refer to together.
	eventBudget = 64 << 20
)

// newHub returns the hub of a host's events; slow is called for each reader that is ended.
func newHub(slow func()) *hub.Hub[jobhost.Event] {
	return hub.NewSized(hub.Options{
		Replay: eventReplay, Buffer: eventBuffer, BufferBytes: eventBufferBytes, Budget: hub.NewBudget(eventBudget), Slow: slow,
	}, eventSize)
}

// eventSize is about what an event refers to, in bytes.
func eventSize(e jobhost.Event) int {
	n := len(e.Data)
	if e.Failure != nil {
		n += 256 + len(e.Failure.Message) + len(e.Failure.Context) + len(e.Failure.Stack)
	}
	return n
}

// Run runs the host until ctx ends, and then stops it in good order. It
// returns nil after a clean stop; otherwise what went wrong: a plugin that
// can't be loaded, a store that failed, or, as [record.ErrTermOver], that another
// host leads. A host runs once.
func (h *Host) Run(ctx context.Context) error {
	if !h.become(Starting) {
		return errors.New("run host: it has run before")
	}
	err := h.run(ctx)
	h.become(Stopped)
	h.hub.Close(errStopped)
	return err
}

func (h *Host) run(ctx context.Context) error {
	root := scope.New(context.Background(), "host")
	err := h.startWithStore(ctx, root)
	switch {
	case err == nil:
		h.become(Running)
		h.cfg.Logger.Info("host runs", logkey.Count, len(h.running.Load().workers()))
		err = h.wait(ctx)
	case ctx.Err() != nil, h.cfg.Store.Err() != nil:
		err = nil // stopped before it ran
	}
	return errors.Join(err, h.stop(root))
}

// startWithStore is start that ends when the store fails: loading plugins may take minutes.
func (h *Host) startWithStore(ctx context.Context, root *scope.Scope) error {
	ctx, cancel := context.WithCancelCause(ctx)
	err := root.Go("store", func(context.Context) error {
		select {
		case <-h.cfg.Store.Failed():
			cancel(h.cfg.Store.Err())
		case <-h.leaving.Done():
			cancel(nil)
		}
		return nil
	})
	if err != nil {
		cancel(nil)
		return err
	}
	return h.start(ctx, root)
}

// start loads the plugins, opens the queue and starts the pools.
func (h *Host) start(ctx context.Context, root *scope.Scope) error {
	if err := h.held.load(ctx, h.cfg.Store); err != nil {
		return err
	}
	h.suspectLoads()
	plugins, err := h.load(ctx, h.workers)
	if err != nil {
		return err
	}
	r, err := h.open(ctx, root, plugins)
	if err != nil {
		return errors.Join(err, closeAll(plugins))
	}
	h.workers, h.cfg.Workers = nil, nil // what runs is what counts from now on
	h.running.Store(r)
	h.cfg.Metrics.SetSource(h)
	var errs []error
	for _, w := range r.workers() {
		errs = append(errs, r.startWorker(w))
	}
	if err := errors.Join(append(errs, r.startUpkeep())...); err != nil {
		return err
	}
	if err := r.startFibers(h.cfg.Fibers.Start); err != nil {
		return err
	}
	return r.startSchedules(ctx)
}

// open makes the pieces of a running host; nothing runs yet.
func (h *Host) open(ctx context.Context, root *scope.Scope, plugins []loaded) (*running, error) {
	if err := h.cfg.sandboxes(h.workers).check(); err != nil { // by what only loading tells
		return nil, err
	}
	h.hooks.settings.Store(h.cfg.Webhook) // tasks may die as soon as the queue is open
	r := &running{host: h, root: root}
	if err := h.openQueue(ctx, r); err != nil {
		return nil, err
	}
	if err := h.recover(ctx, r.Queue); err != nil {
		return nil, err
	}
	r.join(h.states, h.newScheduler(r.Queue))
	workers := map[string]*worker{}
	for i := range h.workers {
		cfg := h.workers[i]
		w := h.newWorker(&cfg, plugins[i], r)
		h.holdStruck(&cfg, r.Queue)
		w.watchDisabled(plugins[i].Plugin, r.Queue)
		workers[cfg.Name] = w
	}
	r.current.Store(&workers)
	// Its scope comes before those of the workers, so that fibers are joined first: their
	// guests run on what the workers have loaded.
	var err error
	r.Registry, err = h.newFibers(root)
	return r, err
}

// openQueue opens the queue, with the payload stores and the workflows that it works with.
func (h *Host) openQueue(ctx context.Context, r *running) (err error) {
	config := h.queueConfig()
	if r.objects, err = h.newObjects(ctx, &config); err != nil {
		return err
	}
	if r.Engine, err = h.newEngine(); err != nil {
		return err
	}
	config.Workflows = r.Engine
	if r.Queue, err = queue.New(ctx, h.cfg.Store, config); err != nil {
		return err
	}
	if r.objects != nil {
		r.objects.Notify(r.StoresChanged)
	}
	return r.Engine.Open(ctx, r.Queue)
}

func (h *Host) queueConfig() queue.Config {
	workers := make([]queue.Worker, len(h.workers))
	for i := range h.workers {
		workers[i] = h.workers[i].forQueue()
	}
	workers = append(workers, workflow.Timers())
	return queue.Config{
		Workers:    workers,
		Aging:      h.cfg.Aging,
		MaxRunning: h.cfg.MaxRunning,
		MaxMemory:  h.cfg.sandboxes(h.workers).taskMemory(),
		MaxPayload: h.cfg.MaxPayload,
		Publish:    h.publish,
		Settled:    h.settled,
		Webhooks:   &h.hooks,
		Crashed:    h.crashed(),
		StatesGone: h.statesGone,
		Removed:    func(reason queue.Removal, n int) { h.cfg.Metrics.Removed(string(reason), n) },
		Logger:     h.cfg.Logger,
	}
}

// wait returns nil when ctx ends or the store has failed, which stop reports, or else the
// fault of a worker.
func (h *Host) wait(ctx context.Context) error {
	fault, _ := op.Perform(ctx, op.Choice(
		h.fault.Get(),
		op.Wrap(op.Closed(h.cfg.Store.Failed()), func(struct{}) (error, error) { return nil, nil }),
	))
	return fault
}

// watch ends the host when a worker's scope fails, which only a fault of the host
// itself causes: a restart is better than tasks that wait without end.
func (h *Host) watch(worker *scope.Scope) {
	context.AfterFunc(worker.Context(), func() {
		if worker.Status() != scope.StatusFailed {
			return
		}
		h.fault.Set(fmt.Errorf("%s: %w", worker.Name(), worker.Report().Primary), nil) // one is enough
	})
}
