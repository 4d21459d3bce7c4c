// Package host is the job server: it joins the pillars (runtime, state,
// netproxy) to the durable queue, admits jobs, runs them in pools of
// sandboxes, settles them and tells what happens.
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

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Host is a job server. It implements [jobhost.Server]; calls before it runs
// and after it has stopped are unavailable.
type Host struct {
	cfg Config
	hub *hub.Hub[jobhost.Event]

	mu    sync.Mutex // protects state and ran
	state State
	ran   bool

	started chan struct{} // closed when the start is over, well or not
	fault   chan error    // holds the first fault of a worker's scope

	running atomic.Pointer[running] // nil until the queue is open
}

// running is what exists while a host runs.
type running struct {
	queue   *queue.Queue
	workers map[string]*worker
}

// worker is a loaded plugin with its pool.
type worker struct {
	cfg     *Worker
	plugin  runtime.Plugin
	pool    *pool.Pool
	metrics *metrics.Worker
}

// New returns a host; Run runs it.
func New(cfg Config) (*Host, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("configure host: %w", err)
	}
	cfg.setDefaults()
	return &Host{
		cfg: cfg,
		hub: hub.NewSized(hub.Options{
			Replay: eventReplay,
			Buffer: eventBuffer,
			Slow:   func() { cfg.Metrics.LimitHit(metrics.LimitReader) },
		}, eventSize),
		started: make(chan struct{}),
		fault:   make(chan error, 1),
	}, nil
}

const (
	eventReplay = 8192 // events that a reconnecting reader can catch up on
	eventBuffer = 1024 // events that a reader may lag behind
)

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
// can't be loaded, a store that failed. A host runs once.
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
	err := h.start(ctx, root)
	if err == nil {
		h.become(Running)
		h.cfg.Logger.Info("host runs", logkey.Count, len(h.cfg.Workers))
		err = h.wait(ctx)
	} else if ctx.Err() != nil {
		err = nil // told to stop before it ran
	}
	return errors.Join(err, h.stop(root))
}

// start loads the plugins, opens the queue and starts the pools.
func (h *Host) start(ctx context.Context, root *scope.Scope) error {
	plugins, err := h.load(ctx)
	if err != nil {
		return err
	}
	if err := root.Finally(func(bool, scope.Status, error) error { return closeAll(plugins) }); err != nil {
		return errors.Join(err, closeAll(plugins))
	}
	r := &running{workers: map[string]*worker{}}
	if r.queue, err = queue.New(ctx, h.cfg.Store, h.queueConfig()); err != nil {
		return err
	}
	for i := range h.cfg.Workers {
		w := h.newWorker(&h.cfg.Workers[i], plugins[i], r.queue)
		r.workers[w.cfg.Name] = w
	}
	h.running.Store(r)
	h.cfg.Metrics.SetSource(h)
	for _, w := range r.workers {
		child, err := root.Child("worker " + w.cfg.Name)
		if err == nil {
			h.watch(child)
			err = w.pool.Start(child)
		}
		if err != nil {
			return fmt.Errorf("start worker %s: %w", w.cfg.Name, err)
		}
	}
	return nil
}

func (h *Host) queueConfig() queue.Config {
	workers := make([]queue.Worker, len(h.cfg.Workers))
	for i, w := range h.cfg.Workers {
		workers[i] = queue.Worker{Name: w.Name, Capacity: w.QueueCapacity, Retry: w.Retry, Timeout: w.Limits.Timeout}
	}
	return queue.Config{
		Workers:    workers,
		Aging:      h.cfg.Aging,
		MaxRunning: h.cfg.MaxRunning,
		MaxPayload: h.cfg.MaxPayload,
		Publish:    h.publish,
		Settled:    h.settled,
		Logger:     h.cfg.Logger,
	}
}

func (h *Host) newWorker(cfg *Worker, plugin runtime.Plugin, q *queue.Queue) *worker {
	m := h.cfg.Metrics.Worker(cfg.Name)
	return &worker{
		cfg:     cfg,
		plugin:  plugin,
		metrics: m,
		pool: pool.New(pool.Config{
			Worker:  cfg.Name,
			Size:    cfg.PoolSize,
			Queue:   q,
			Plugin:  plugin,
			Config:  cfg.Config,
			Secrets: cfg.Secrets,
			Limits: hostcall.Limits{
				OutputBytes: cfg.Limits.OutputBytes,
				LogBytes:    cfg.Limits.LogBytes,
				LineBytes:   cfg.Limits.LineBytes,
			},
			Services:    &services{host: h, guest: m.Guest(), now: q.Now},
			CancelGrace: h.cfg.CancelGrace,
			Replaced:    m.SandboxReplaced,
			Logger:      h.cfg.Logger,
		}),
	}
}

// wait returns when ctx ends, when the store has failed, which stop tells of,
// or with the fault of a worker.
func (h *Host) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.fault:
		return err
	case <-h.storeFailed():
		return nil
	}
}

// watch ends the host when a worker's scope fails, which only a fault of the
// host can do: better to be started again than to leave tasks waiting.
func (h *Host) watch(worker *scope.Scope) {
	context.AfterFunc(worker.Context(), func() {
		if worker.Status() != scope.StatusFailed {
			return
		}
		select {
		case h.fault <- fmt.Errorf("%s: %w", worker.Name(), worker.Report().Primary):
		default: // one is enough
		}
	})
}
