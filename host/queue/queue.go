// Package queue is the durable queue: it admits jobs, orders their tasks,
// leases them to slots, settles their attempts and answers questions about
// them. Ordering, limits, retries and leases are written once, here; a [record.Store]
// keeps what must survive, and what is held in memory is only a window over it.
//
//	Submit ─► Store.Commit ─► lane (one per worker) ─► Slot.Take ─► run ─► Settle ─► Store.Commit
package queue

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Config says how a queue works. Zero values mean the defaults in brackets.
type Config struct {
	Workers []Worker
	// Aging raises a waiting task by one priority each time it passes [60 s]; negative = never.
	Aging time.Duration
	// MaxRunning bounds the tasks that run at once over all workers [no bound].
	MaxRunning int
	// MaxMemory bounds the memory of all tasks that run at once, in bytes [no bound].
	MaxMemory int64
	// MaxPayload bounds the payload of a job, in bytes [1 MiB].
	MaxPayload int
	// Objects keeps payloads over Threshold, and results [none: all are in the store].
	Objects Objects
	// Absences knows which stores of the objects are away [none ever is].
	Absences Absences
	// StatesGone is called when jobs were removed of which there may be states elsewhere:
	// see [StateReader]. It must not block [no call].
	StatesGone func()
	// Threshold is the largest payload that is kept in the store, in bytes [64 KiB].
	Threshold int
	// ResidentBytes bounds the bodies of waiting tasks that are kept in memory [16 MiB].
	ResidentBytes int64
	// Publish is called with everything that happens, after it is durable, and
	// must not block [no call].
	Publish func(jobhost.Event)
	// Settled is called for each attempt that ended, and must not block [no call].
	Settled func(Settlement)
	// Random gives numbers in [0,1) for jitter [math/rand].
	Random func() float64
	// Webhooks knows how receivers are notified of ends and deaths over HTTP [none are].
	Webhooks Webhooks
	// Workflows decides what becomes of workflows [there are none].
	Workflows Workflows
	// Removed is called with how many tasks were removed for a reason, and must not
	// block [no call].
	Removed func(reason Removal, tasks int)
	// Crashed are the attempts that were under way when the last host died, for
	// [Queue.SettleCrashed] [none].
	Crashed []Crashed
	Logger  *slog.Logger // [discard]
}

// Worker is what the queue must know of a worker.
type Worker struct {
	Name string
	// Capacity bounds the tasks that wait.
	Capacity int
	// Memory is what a task may take while it runs, in bytes; no more than the
	// queue's MaxMemory.
	Memory int64
	// Retry and Timeout hold for jobs that don't say otherwise.
	Retry   jobhost.RetryPolicy
	Timeout time.Duration
	// Rate bounds how often tasks begin [no bound].
	Rate jobhost.Rate
	// RateBurst is how many may begin at once after a rest [what comes in 100 ms, at least 1].
	RateBurst int
	// PerKey bounds the tasks with one concurrency key that run at once [no bound].
	PerKey int
	// Breaker holds tasks while others fail [none].
	Breaker jobhost.BreakerPolicy
	// Retention says how long jobs are kept that don't say so themselves, and
	// bounds the dead letters; the zero value keeps everything forever.
	Retention jobhost.Retention
}

// Settlement says how an attempt ended, for metrics.
type Settlement struct {
	Worker  string
	Outcome jobhost.OutcomeKind
	State   jobhost.State // that the task is in now
	// Failure is the attempt's, if it failed.
	Failure *jobhost.Failure
	// LogDropped counts the lines of its log that were over the limits.
	LogDropped int64
	// Waited is how long the task was ready before it was taken, Ran how long
	// the attempt took.
	Waited, Ran time.Duration
}

// Queue is the durable queue. All methods may be called from many goroutines.
type Queue struct {
	store  record.Store
	leased record.Leased   // the store, if hosts share it; else nil
	failed <-chan struct{} // of the store
	cfg    Config
	clock  *clock
	lanes  lanes
	gate   *gate

	breakers breakers
	objects  objects
	events   publisher
	crashed  crashed // until they are settled
	suspects *suspects

	past     past
	noted    atomic.Bool                   // where the rates stand
	calm     time.Time                     // until then nothing is removed; zero = there is no reason to wait
	resident atomic.Int64                  // bytes in all body caches
	refusal  atomic.Pointer[jobhost.Error] // of new jobs; nil = none
	closed   atomic.Bool
	closing  chan struct{} // closed with closed
	inflight op.WaitGroup  // commits under way
}

var errClosed = &jobhost.Error{
	Code:    jobhost.CodeUnavailable,
	Message: "the host is stopping",
	Hint:    "submit again when it is back; the same id makes that safe",
}

// New claims all open tasks from the store and returns the queue. Those of
// workers that it doesn't know are held. The caller closes the queue first and
// the store afterwards.
func New(ctx context.Context, store record.Store, cfg Config) (*Queue, error) {
	setDefaults(&cfg)
	q := &Queue{
		store:   store,
		failed:  store.Failed(),
		cfg:     cfg,
		clock:   newClock(store.Now),
		gate:    newGate(cfg.MaxRunning, cfg.MaxMemory),
		closing: make(chan struct{}),
		crashed: newCrashed(cfg.Crashed),
	}
	q.leased, _ = store.(record.Leased)
	q.breakers.q = q
	q.objects = objects{cfg.Objects, cfg.Threshold}
	q.events = publisher{&q.cfg, q.clock}
	q.suspects = newSuspects(q)
	if err := q.compareClock(ctx); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if err := q.recall(ctx); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	for _, w := range cfg.Workers {
		if err := q.Prepare(ctx, w); err != nil {
			q.Stop() // the timers of the lanes before
			return nil, err
		}
		q.Put(w)
	}
	if err := q.prepareMissing(ctx); err != nil {
		q.Stop()
		return nil, err
	}
	q.suspects.begin()
	return q, nil
}

func setDefaults(cfg *Config) {
	if cfg.Aging == 0 {
		cfg.Aging = time.Minute
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = 1 << 20
	}
	if cfg.Threshold == 0 {
		cfg.Threshold = 64 << 10
	}
	if cfg.ResidentBytes == 0 {
		cfg.ResidentBytes = 16 << 20
	}
	if cfg.Publish == nil {
		cfg.Publish = func(jobhost.Event) {}
	}
	if cfg.Settled == nil {
		cfg.Settled = func(Settlement) {}
	}
	if cfg.Removed == nil {
		cfg.Removed = func(Removal, int) {}
	}
	if cfg.Webhooks == nil {
		cfg.Webhooks = noWebhooks{}
	}
	if cfg.Workflows == nil {
		cfg.Workflows = noWorkflows{}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

// Stop stops admission and dispatch: submits and takes are refused from now on.
// Leases can still be settled.
func (q *Queue) Stop() {
	if q.closed.Swap(true) {
		return
	}
	close(q.closing)
	q.suspects.stop()
	for _, l := range q.lanes.all() {
		l.stop()
	}
}

// Close stops the queue, notes where the rates stand, and waits for the commits
// under way, or until ctx ends. Leases that were not settled are open for the
// next queue. The store stays open.
func (q *Queue) Close(ctx context.Context) error {
	q.Stop()
	q.noteRates(ctx)
	q.suspects.close(ctx)
	if _, err := op.Perform(ctx, q.inflight.Wait()); err != nil {
		return fmt.Errorf("close queue: commits are still under way: %w", err)
	}
	return nil
}
