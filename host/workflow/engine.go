// Package workflow runs workflows over the queue: durable graphs of jobs. A waiting workflow needs no
// goroutine, no timer and no memory.
//
// A running workflow is a record in the store. Everything that happens to it is an operation of the queue
// that carries a [record.Transition]: within the store's transaction this asks [course] what follows, and
// writes it: the record, jobs for the steps that can run now, cancels, timers. So the end of a step and
// the start of the next are one commit, and a crash falls between transitions.
//
//	job settled ─┐
//	start ───────┤                    ┌─► record, steps, data      ┐
//	signal ──────┼─► Apply ─► machine ─┼─► jobs, cancels, timers    ├ one commit ─► Applied: events, metrics
//	timer's job ─┘          ▲         └─► the workflow above/below ┘
//	                     the plan's expressions
package workflow

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Config configures the engine. Zero values mean the defaults in brackets.
type Config struct {
	// MaxOpen bounds the workflows running at a time [100,000].
	MaxOpen int
	// MaxNesting bounds how deep workflows can be nested as steps [16].
	MaxNesting int
	// Retention says how long workflows are kept after their end.
	Retention jobhost.WorkflowRetention
	// MaxInput bounds the input of a workflow, in bytes [1 MiB].
	MaxInput int
	// Bounds are the limits on what one event may begin [those of course].
	Bounds machine.Bounds
	// Publish is called with events after they are durable, and must not block [none].
	Publish func(jobhost.Event)
	// Observer is notified of the same, for metrics [none].
	Observer Observer
	Logger   *slog.Logger // [discard]
}

// Observer is notified of workflow events. Its methods must not block.
type Observer interface {
	// Open reports how many workflows are running when the engine opens.
	Open(name string, n int64)
	WorkflowStarted(name string)
	WorkflowResumed(name string)
	WorkflowEnded(name string, status jobhost.WorkflowStatus, took time.Duration)
	// StepEnded reports how long the job of a step took from its submit; 0 = it had none.
	StepEnded(workflow, step string, status jobhost.StepStatus, took time.Duration)
}

type noObserver struct{}

func (noObserver) Open(string, int64)                                          {}
func (noObserver) WorkflowStarted(string)                                      {}
func (noObserver) WorkflowResumed(string)                                      {}
func (noObserver) WorkflowEnded(string, jobhost.WorkflowStatus, time.Duration) {}
func (noObserver) StepEnded(string, string, jobhost.StepStatus, time.Duration) {}

// Engine runs workflows. It implements [queue.Workflows], and works once it has been opened.
type Engine struct {
	cfg   Config
	store record.WorkflowReader
	queue *queue.Queue // set by Open, before anything uses it
	defs  definitions
	open  atomic.Int64 // running workflows
	// starting is the number of calls of Start in progress. Each may add one to open, which happens before
	// the call ends.
	starting atomic.Int64
}

var _ queue.Workflows = (*Engine)(nil)

// New returns an engine without definitions.
func New(store record.WorkflowReader, cfg Config) *Engine {
	if cfg.Bounds == (machine.Bounds{}) {
		cfg.Bounds = machine.DefaultBounds()
	}
	if cfg.MaxOpen == 0 {
		cfg.MaxOpen = 100_000
	}
	if cfg.MaxNesting == 0 {
		cfg.MaxNesting = 16
	}
	if cfg.MaxInput == 0 {
		cfg.MaxInput = 1 << 20
	}
	if cfg.Publish == nil {
		cfg.Publish = func(jobhost.Event) {}
	}
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{cfg: cfg, store: store}
	e.defs.init()
	return e
}

// Open connects the engine to a queue that has it in its configuration. It compiles the definitions of
// open workflows. Those that no longer compile are logged; their workflows fail at their next event.
func (e *Engine) Open(ctx context.Context, q *queue.Queue) error {
	e.queue = q
	open, err := e.store.OpenWorkflows(ctx)
	if err != nil {
		return fmt.Errorf("open workflows: %w", err)
	}
	for name, n := range open {
		e.open.Add(n)
		e.cfg.Observer.Open(name, n)
	}
	texts, err := e.store.OpenDefinitions(ctx)
	if err != nil {
		return fmt.Errorf("open workflows: %w", err)
	}
	for hash, text := range texts {
		if _, err := e.defs.compile(hash, text); err != nil {
			e.cfg.Logger.Error("a definition that workflows run can't be read", logkey.SHA256, hash[:min(len(hash), 12)], logkey.Error, err)
		}
	}
	return nil
}

// Define makes these the definitions that can be started by name. Those that have been started go on with
// what they began with.
func (e *Engine) Define(d Definitions) { e.defs.define(d) }
