package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// batch runs the inputs of one exec on some sandboxes and prints the results
// in the order of the inputs.
//
//	read ─► todo ─► run (one goroutine a sandbox) ─► item.done
//	  └───► line ─────────────────────────────────────► print
//
// Both channels are short, so that memory holds a few inputs and results
// however many there are.
type batch struct {
	env    *env
	flags  *execFlags
	worker host.Worker
	plugin runtime.Plugin
	http   netproxy.Pool // nil = no requests

	begun    atomic.Int64           // inputs
	disabled atomic.Pointer[string] // why the plugin can't run anything; nil = it can

	bar        *progress
	ok, failed int
}

// item is one input on its way.
type item struct {
	input
	done    chan struct{} // closed when the rest is set
	outcome jobhost.Outcome
	log     []byte
	dropped int64
	why     string // it has come back; empty = it has not
}

func (b *batch) run(ctx context.Context, in *inputs) error {
	began := time.Now()
	if fallible, ok := b.plugin.(runtime.Fallible); ok {
		fallible.OnDisabled(func(reason string) { b.disabled.Store(&reason) })
		defer fallible.OnDisabled(nil)
	}
	todo := make(chan *item)
	line := make(chan *item, 4*b.flags.parallel) // results may wait here for slower ones before them
	b.bar = newProgress(b.env, b.flags.quiet || in.typed(), in.total())

	// Reading has a scope of its own: an interrupt does not wait for it, since
	// nothing can end the read of a pipe or a terminal.
	reading := scope.New(ctx, "read")
	defer reading.Cancel(nil)
	var unread error // kept here: it must not stop the inputs before it
	err := reading.Go("", func(ctx context.Context) error {
		defer close(todo)
		defer close(line)
		unread = in.each(func(i input) bool {
			it := &item{input: i, done: make(chan struct{})}
			return send(ctx, line, it) && send(ctx, todo, it)
		})
		return nil
	})
	work := scope.New(ctx, "exec")
	for i := range b.flags.parallel {
		err = errors.Join(err, work.Go(fmt.Sprintf("sandbox %d", i), func(ctx context.Context) error {
			return b.work(ctx, todo)
		}))
	}
	err = errors.Join(err, work.Go("print", func(ctx context.Context) error { return b.print(ctx, line) }))
	report, _ := work.Join(context.WithoutCancel(ctx)) // without an end it waits to the end
	b.bar.clear()
	if ctx.Err() != nil {
		b.env.note("interrupted: %d ok, %d failed, the others have no result", b.ok, b.failed)
		return errReported
	}
	if err = errors.Join(err, report.Err()); err != nil {
		return err
	}
	if _, err := reading.Join(ctx); err != nil || unread != nil {
		return errors.Join(err, unread)
	}
	if !b.flags.quiet && (b.env.stderr.terminal || b.ok+b.failed > 1) {
		b.env.note("%d ok, %d failed, %v", b.ok, b.failed, time.Since(began).Round(time.Millisecond))
	}
	if b.failed > 0 {
		return errReported
	}
	return nil
}

func send(ctx context.Context, to chan<- *item, it *item) bool {
	select {
	case to <- it:
		return true
	case <-ctx.Done():
		return false
	}
}

// work runs inputs in one sandbox.
func (b *batch) work(ctx context.Context, todo <-chan *item) error {
	sandbox := runtime.NewSandbox(b.plugin, nil)
	defer func() { _ = sandbox.Close(context.WithoutCancel(ctx)) }()
	for {
		select {
		case it, more := <-todo:
			if !more {
				return nil
			}
			b.runItem(ctx, sandbox, it)
			close(it.done)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// runItem runs an input. One that comes back, since its process has ended because of another, say, is run again.
func (b *batch) runItem(ctx context.Context, sandbox *runtime.Sandbox, it *item) {
	id := fmt.Sprintf("exec-%d", b.begun.Add(1))
	for {
		at := b.attempt(id, it)
		it.outcome = sandbox.Run(ctx, at)
		it.log, it.dropped = at.TakeLog()
		if it.outcome.Kind != jobhost.OutcomeReturned || ctx.Err() != nil {
			return
		}
		if reason := b.disabled.Load(); reason != nil {
			it.why = "the plugin can't run anything any more: " + *reason
			return
		}
	}
}

func (b *batch) attempt(id string, it *item) *hostcall.Attempt {
	limits := b.worker.Limits.OrDefaults()
	return &hostcall.Attempt{
		Job:      id,
		Worker:   b.worker.Name,
		Tasks:    1,
		Number:   1,
		Input:    it.data,
		Deadline: time.Now().Add(limits.Timeout),
		Config:   b.worker.Config,
		Secrets:  b.worker.Secrets,
		Services: &pending.Alone{Pool: b.http},
		Limits: hostcall.Limits{
			OutputBytes: limits.OutputBytes,
			LogBytes:    limits.LogBytes,
			LineBytes:   limits.LineBytes,

			OpenRequests: limits.OpenRequests,
			Requests:     limits.Requests,
			RequestBytes: limits.RequestBytes,
		},
	}
}

// print prints results in order as they arrive, and its progress.
func (b *batch) print(ctx context.Context, line <-chan *item) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var next *item // whose result is waited for
	var done <-chan struct{}
	for {
		from := line
		if next != nil {
			from = nil
		}
		select {
		case it, more := <-from:
			if !more {
				return nil
			}
			next, done = it, it.done
		case <-done:
			if ctx.Err() != nil { // then the outcome is that of the interrupt
				return context.Cause(ctx)
			}
			b.printItem(next)
			next, done = nil, nil
		case <-tick.C:
			b.bar.draw()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// printItem prints what became of an input. The progress is taken away only
// when something else is to be seen on the terminal.
func (b *batch) printItem(it *item) {
	succeeded := it.outcome.Kind == jobhost.OutcomeSucceeded
	logs := !b.flags.quiet && (len(it.log) > 0 || it.dropped > 0)
	if logs || !succeeded || b.env.stdout.terminal {
		b.bar.clear()
		defer b.bar.draw()
	}
	if logs {
		b.printLog(it)
	}
	if succeeded {
		b.ok++
		b.printResult(it.outcome.Output)
	} else {
		b.failed++
		b.env.report(outcomeError(it))
	}
	b.bar.done, b.bar.failed = b.ok+b.failed, b.failed
}

func (b *batch) printResult(out []byte) {
	if b.env.stdout.terminal {
		out = []byte(text.Escape(string(out), "\n\t"))
	}
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	_, _ = b.env.stdout.Write(out)
}

func (b *batch) printLog(it *item) {
	for l := range strings.Lines(string(it.log)) {
		_, _ = fmt.Fprintf(b.env.stderr, "%s: %s\n", printable(it.name), text.Escape(strings.TrimSuffix(l, "\n"), "\t"))
	}
	if it.dropped > 0 {
		_, _ = fmt.Fprintf(b.env.stderr, "%s: %d lines were dropped, over the limit\n", printable(it.name), it.dropped)
	}
}

// outcomeError says why an input has no result.
func outcomeError(it *item) error {
	switch it.outcome.Kind {
	case jobhost.OutcomeFailed:
		f := it.outcome.Failure
		return &jobhost.Error{Code: jobhost.CodeInternal, Message: fmt.Sprintf("%s: %s", it.name, failureText(f))}
	case jobhost.OutcomeSnoozed:
		return fmt.Errorf("%s: the worker asked to run again in %v", it.name, it.outcome.Snooze)
	default:
		return fmt.Errorf("%s: %s", it.name, cmp.Or(it.why, it.outcome.Kind.String()))
	}
}
