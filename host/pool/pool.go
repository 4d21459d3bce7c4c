// Package pool runs the tasks of one worker on a bounded number of slots. Each
// slot is a goroutine with a sandbox of its own: it takes a task, runs it to
// its end and settles it.
package pool

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Config says what a pool runs.
type Config struct {
	Worker string
	Size   int // slots, at least 1
	Queue  *queue.Queue
	Plugin runtime.Plugin
	// Config, Secrets and Limits are what each attempt is given.
	Config, Secrets map[string]string
	Limits          hostcall.Limits
	// Services stands behind the guests' calls.
	Services hostcall.Services
	// CancelGrace is how long an attempt of a cancelled job may go on.
	CancelGrace time.Duration
	// Replaced is called when a sandbox broke and was thrown away, with the
	// code of the failure that broke it; may be nil.
	Replaced func(reason string)
	Logger   *slog.Logger
}

// Pool runs the tasks of one worker.
type Pool struct {
	cfg  Config
	busy atomic.Int64
}

// New returns a pool; Start starts it.
func New(cfg Config) *Pool { return &Pool{cfg: cfg} }

// Busy returns how many slots run a task.
func (p *Pool) Busy() int { return int(p.busy.Load()) }

// Size returns how many slots there are.
func (p *Pool) Size() int { return p.cfg.Size }

// Start starts the slots in the worker's scope. Each ends when the queue is
// closed, after the task that it runs; cancelling the scope stops that task
// too, and it goes back to the queue without counting.
func (p *Pool) Start(worker *scope.Scope) error {
	for i := range p.cfg.Size {
		s := &slot{
			pool:     p,
			Services: p.cfg.Services,
			worker:   worker,
			queue:    p.cfg.Queue.Slot(p.cfg.Worker),
			sandbox:  runtime.NewSandbox(p.cfg.Plugin, p.cfg.Replaced),
		}
		err := worker.Go(fmt.Sprintf("slot %d", i), s.run)
		if err != nil {
			return fmt.Errorf("start pool of %s: %w", p.cfg.Worker, err)
		}
	}
	return nil
}
