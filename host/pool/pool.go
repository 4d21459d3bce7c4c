// Package pool runs the tasks of one worker on a bounded number of slots. Each slot is a
// goroutine with its own sandbox: it takes a task, runs it to its end and settles it.
//
// Slots run a [Version]: a plugin with its settings. [Pool.Swap] replaces it while tasks
// run. Running tasks finish on the version they began on, later ones run on the new one,
// and the old plugin is closed after its last sandbox. [Pool.Resize] changes only the
// number of slots.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Config is the part of a pool's configuration that doesn't depend on the version.
type Config struct {
	Worker string
	Queue  *queue.Queue
	// Services implements the guests' calls.
	Services hostcall.Services
	// Jobs are the jobs that attempts may wait for.
	Jobs pending.Jobs
	// States are what attempts report, and see of others; nil = none.
	States *taskstate.Keeper
	// CancelGrace is how long an attempt of a cancelled job may continue.
	CancelGrace time.Duration
	// Ran is called after every run, before its task is settled; may be nil.
	Ran func(*runtime.Result)
	// Spool takes results that are too large for memory, up to limit bytes, while ctx
	// lasts; nil = all results are in memory.
	Spool func(ctx context.Context, limit int64) (Spool, error)
	// Journal records the running attempts; nil = no record.
	Journal *journal.Journal
	// EndedProcess is called when a task that appears to have crashed a host has now
	// ended the separate process it ran in; may be nil.
	EndedProcess func(ctx context.Context, failure *jobhost.Failure)
	// Hit is called for each limit hit by the effects of an attempt; may be nil.
	Hit    func(effect.Limit)
	Logger *slog.Logger
}

// Pool runs the tasks of one worker.
type Pool struct {
	cfg  Config
	busy atomic.Int64

	scope   *scope.Scope            // of the slots; set by Start
	current atomic.Pointer[version] // nil after Close; changed under mu
	size    atomic.Int64            // the target number of slots; changed under mu

	mu    sync.Mutex // protects live, alive and the holders of versions
	live  []bool     // which slots exist, by number
	alive int        // number of true ones

	ended chan struct{} // closed when the pool is closed and the last slot has ended
}

// New returns a pool of a version, which it owns from now on; Start starts it, Close closes
// it.
func New(cfg Config, v Version) *Pool {
	p := &Pool{cfg: cfg, ended: make(chan struct{})}
	p.current.Store(newVersion(context.Background(), v))
	p.size.Store(int64(v.Size))
	return p
}

// Busy returns how many slots are running a task.
func (p *Pool) Busy() int { return int(p.busy.Load()) }

// Size returns how many slots there are, not counting those that end after their current
// task.
func (p *Pool) Size() int {
	if p.current.Load() == nil {
		return 0
	}
	return int(p.size.Load())
}

// Start starts the slots in the worker's scope. Each ends when the queue or the pool is
// closed, after its current task; cancelling the scope stops that task too, and it goes
// back to the queue without counting as an attempt. The pool is closed when the scope has
// been joined, or by the caller if Start fails.
func (p *Pool) Start(worker *scope.Scope) error {
	p.scope = worker
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.current.Load()
	if err := worker.Finally(func(bool, scope.Status, error) error { p.Close(); return nil }); err != nil {
		return fmt.Errorf("start pool of %s: %w", p.cfg.Worker, err)
	}
	p.current.Store(newVersion(worker.Context(), first.Version)) // it ends with the scope
	first.end()
	return p.growLocked(first.Size)
}

// growLocked starts the missing slots.
func (p *Pool) growLocked(size int) error {
	for len(p.live) < size {
		p.live = append(p.live, false)
	}
	for i := range size {
		if p.live[i] {
			continue
		}
		s := &slot{number: i, pool: p, Services: p.cfg.Services, queue: p.cfg.Queue.Slot(p.cfg.Worker)}
		if err := p.scope.Go(fmt.Sprintf("slot %d", i), s.run); err != nil {
			return fmt.Errorf("start slots of %s: %w", p.cfg.Worker, err)
		}
		p.live[i] = true
		p.alive++
	}
	return nil
}

// Swap replaces the version. After it returns, every task that is taken runs on the new
// version. Running tasks continue; surplus slots end after theirs. On an error nothing has
// changed, and the version still belongs to the caller: the pool is closed, or its scope
// has ended.
func (p *Pool) Swap(next Version) error {
	p.mu.Lock()
	old := p.current.Load()
	if old == nil {
		p.mu.Unlock()
		return errors.New("swap: the pool is closed")
	}
	// New slots see that they are surplus until the version is stored: they wait for mu.
	if err := p.growLocked(next.Size); err != nil {
		p.mu.Unlock()
		return err
	}
	p.current.Store(newVersion(p.scope.Context(), next))
	p.size.Store(int64(next.Size))
	over := old.holders == 0
	p.mu.Unlock()
	old.end()
	if over {
		p.free(old)
	}
	return nil
}

// Resize changes the number of slots, at least 1. New ones take tasks at once; surplus ones
// end after their current task, and the others keep their sandboxes. It is an error if the
// pool is closed or its scope has ended.
func (p *Pool) Resize(size int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.current.Load()
	if v == nil {
		return errors.New("resize: the pool is closed")
	}
	if err := p.growLocked(size); err != nil {
		return err
	}
	p.size.Store(int64(size))
	last := v.taking.Load()
	v.begin(p.scope.Context())
	last.end(errReplaced)
	return nil
}

// Close ends the slots, each after its current task, and closes the plugin after its last
// sandbox. It doesn't wait for that; the join of the worker's scope does.
func (p *Pool) Close() {
	p.mu.Lock()
	old := p.current.Swap(nil)
	if old == nil {
		p.mu.Unlock()
		return
	}
	over := old.holders == 0
	if p.alive == 0 {
		close(p.ended)
	}
	p.mu.Unlock()
	old.end()
	if over {
		p.free(old)
	}
}

// Ended is closed when the pool was closed and its last slot has ended.
func (p *Pool) Ended() <-chan struct{} { return p.ended }

// HTTP returns the sender of the current version's requests: nil = it may send none; false
// = the pool is closed.
func (p *Pool) HTTP() (netproxy.Pool, bool) {
	v := p.current.Load()
	if v == nil {
		return nil, false
	}
	return v.HTTP, true
}

// endHTTP lets remaining requests finish that don't belong to attempts of the pool, whose
// own have ended, and stops them with the worker's scope.
func (p *Pool) endHTTP(pool netproxy.Pool) {
	pool.Drain()
	end := func(ctx context.Context) error {
		_ = pool.Wait(ctx) // or they go back to their sender
		if err := pool.Stop(0); err != nil {
			p.cfg.Logger.Warn("HTTP requests do not end", logkey.Worker, p.cfg.Worker, logkey.Error, err)
		}
		return nil
	}
	switch {
	case p.scope == nil: // it never started
		_ = pool.Stop(0)
	case p.scope.Go("", end) != nil: // it is being joined, and waits for the caller
		_ = end(p.scope.Context())
	}
}

// free closes the plugin of a version without sandboxes.
func (p *Pool) free(v *version) {
	if err := v.Plugin.Close(context.Background()); err != nil {
		p.cfg.Logger.Warn("plugin does not close", logkey.Worker, p.cfg.Worker, logkey.Error, err)
	}
	if v.Apart != nil {
		if err := v.Apart.Close(context.Background()); err != nil {
			p.cfg.Logger.Warn("plugin in a process apart does not close", logkey.Worker, p.cfg.Worker, logkey.Error, err)
		}
	}
	if v.HTTP != nil {
		p.endHTTP(v.HTTP)
	}
}
