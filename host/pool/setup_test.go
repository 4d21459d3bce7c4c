package pool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a pool for the worker "w" over a queue in memory, with sandboxes
// that do what the test says.
type fixture struct {
	*queue.Queue
	t      *testing.T
	pool   *pool.Pool
	plugin *plugin
	worker *scope.Scope // of the slots
	log    logBuffer
	open   sync.WaitGroup // jobs that have not ended

	mu      sync.Mutex // protects settled
	settled []queue.Settlement
}

// settings are what a test may change.
type settings struct {
	pool.Config
	version pool.Version
}

// grace is what the attempts of a cancelled job have left.
const grace = 5 * time.Second

// setup starts a pool of one slot, unless change says otherwise, whose
// sandboxes run tasks by run.
func setup(t *testing.T, run runFunc, change ...func(*settings)) *fixture {
	t.Helper()
	f := &fixture{t: t, plugin: &plugin{run: run}, worker: scope.New(context.Background(), "worker w")}
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.Queue, err = queue.New(t.Context(), store, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 10_000, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
		Settled: f.note,
		Publish: func(e jobhost.Event) {
			if e.Kind == jobhost.EventEnded {
				f.open.Done()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := settings{
		Config: pool.Config{
			Worker:      "w",
			Queue:       f.Queue,
			Services:    &services{},
			CancelGrace: grace,
			Logger:      slog.New(slog.NewTextHandler(&f.log, nil)),
		},
		version: pool.Version{
			Plugin: f.plugin,
			Size:   1,
			Limits: hostcall.Limits{OutputBytes: 1 << 10, LogBytes: 64, LineBytes: 1 << 10},
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	f.pool = pool.New(cfg.Config, cfg.version)
	t.Cleanup(func() {
		// The order of a host: no more tasks, the slots end, the queue, the store.
		f.Stop()
		f.worker.Cancel(hostcall.ErrReturned)
		report, err := f.worker.Join(context.Background())
		if err := errors.Join(err, f.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
		if report.Status == scope.StatusFailed {
			t.Errorf("the slots ended with %v", report.Err())
		}
	})
	if err := f.pool.Start(f.worker); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) note(s queue.Settlement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = append(f.settled, s)
}

// outcomes returns how the attempts ended that are settled, in order.
func (f *fixture) outcomes() []jobhost.OutcomeKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kinds []jobhost.OutcomeKind
	for _, s := range f.settled {
		kinds = append(kinds, s.Outcome)
	}
	return kinds
}

func (f *fixture) wantOutcomes(want ...jobhost.OutcomeKind) {
	f.t.Helper()
	if got := f.outcomes(); !slices.Equal(got, want) {
		f.t.Errorf("attempts ended as %v, want %v", got, want)
	}
}

func (f *fixture) submit(spec jobhost.Spec) string {
	f.t.Helper()
	spec.Worker = "w"
	f.open.Add(1)
	receipt, err := f.Submit(f.t.Context(), spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return receipt.ID
}

func (f *fixture) job(id string) jobhost.Job {
	f.t.Helper()
	job, err := f.Job(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return job
}

func (f *fixture) cancel(id string) {
	if _, err := f.Cancel(context.Background(), id); err != nil {
		f.t.Errorf("cancel %s: %v", id, err)
	}
}

// runFunc is what a sandbox does with an attempt; n counts the sandboxes from 1.
type runFunc func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result

// plugin is a [runtime.Plugin] whose sandboxes run tasks by a function.
type plugin struct {
	run runFunc
	// instantiate, if set, is asked before each sandbox is made.
	instantiate func(ctx context.Context) error
	// closing, if set, is called when a sandbox is closed.
	closing func()

	mu           sync.Mutex // protects made and closed
	made, closed int
}

func (p *plugin) Info() runtime.Info { return runtime.Info{} }

func (p *plugin) Close(context.Context) error { return nil }

func (p *plugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	if p.instantiate != nil {
		if err := p.instantiate(ctx); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return &instance{plugin: p, n: p.made}, nil
}

// sandboxes returns how many were made and closed.
func (p *plugin) sandboxes() (made, closed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made, p.closed
}

type instance struct {
	plugin *plugin
	n      int
}

func (i *instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	return i.plugin.run(ctx, i.n, at)
}

func (i *instance) Close(context.Context) error {
	i.plugin.mu.Lock()
	i.plugin.closed++
	i.plugin.mu.Unlock()
	if i.plugin.closing != nil {
		i.plugin.closing()
	}
	return nil
}

// services stands behind the guests' calls and keeps the last progress.
type services struct {
	hostcall.Services
	done, total int64
}

func (s *services) Progress(_ *hostcall.Attempt, done, total int64) { s.done, s.total = done, total }

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// echo is a run that succeeds with its input.
func echo(_ context.Context, _ int, at *hostcall.Attempt) runtime.Result {
	return runtime.Result{Outcome: at.Outcome(at.Input)}
}

// untilStopped is a run that ends with its context.
func untilStopped(ctx context.Context, _ int, at *hostcall.Attempt) runtime.Result {
	<-ctx.Done()
	return runtime.Result{Outcome: at.Stopped(ctx)}
}
