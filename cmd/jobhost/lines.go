package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
)

// Bounds of submit --lines. What is over them is not read from the input yet.
const (
	batchJobs       = 256
	batchBytes      = 1 << 20 // a batch ends with the line that reaches it
	batchesInFlight = 4
	jobsInFlight    = 64 // whose end is awaited, or whose result waits to be printed
)

// lineBatch is a number of lines that are submitted together.
type lineBatch struct {
	first int // number of the first line
	specs []jobhost.Spec
	// done is closed when answers holds one for each spec, or err is set: the
	// batch as a whole failed.
	done    chan struct{}
	answers []jobhost.Submitted
	err     error
}

// lineEntry is a line on its way to the output.
type lineEntry struct {
	line    int
	receipt jobhost.Receipt
	// ready is closed when end is there.
	ready chan struct{}
	end   *outcome
}

// lineRun submits one job per line. Lines pass through it in order:
//
//	read → dispatch → (submit, several at once) → follow → (await, several at once) → print
//
// The channels between are bounded, and what is full holds up the stage before
// it, the input in the end. An error stops the reading; what was submitted
// until then is still followed and printed.
type lineRun struct {
	env    *env
	server jobhost.Server
	flags  *submitFlags
	// Each channel is closed by the stage that fills it.
	input   chan *lineBatch
	batches chan *lineBatch
	entries chan *lineEntry
	// halt stops the reading.
	halt context.CancelFunc
	// fullNoted is the permit to say once that the queue is full.
	fullNoted chan struct{}

	readErr   error // why reading ended early; set before input is closed
	submitErr error // the first of a batch; set before entries is closed

	submitted, succeeded, failed int // counted by print
}

// lines submits a job for each line of source.
func (e submitEnv) lines(ctx context.Context, f *submitFlags, source string) error {
	name, isFile := strings.CutPrefix(source, "@")
	if !isFile && source != "" && source != "-" {
		return usagef("--lines reads stdin or @FILE, not %q", source)
	}
	in, err := e.open(name, isFile)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	server, err := e.server()
	if err != nil {
		return err
	}
	if err := e.awaitStart(ctx, server, f.wait.forStart()); err != nil {
		return err
	}
	r := &lineRun{
		env: e.env, server: server, flags: f,
		input:     make(chan *lineBatch),
		batches:   make(chan *lineBatch, batchesInFlight),
		entries:   make(chan *lineEntry, jobsInFlight),
		fullNoted: make(chan struct{}, 1),
	}
	began := e.now()
	err = r.run(ctx, in)
	if f.verbose || e.stderr.terminal {
		r.summary(e.now().Sub(began))
	}
	if err == nil && r.failed > 0 {
		err = errReported
	}
	return err
}

func (r *lineRun) summary(d time.Duration) {
	ok := r.succeeded
	if !r.flags.wait.given {
		ok = r.submitted
	}
	r.env.note("%d submitted, %d ok, %d failed in %s", r.submitted, ok, r.failed, took(d))
}

func (r *lineRun) run(ctx context.Context, in io.Reader) error {
	work, ctx := errgroup.WithContext(ctx)
	reading, halt := context.WithCancel(ctx)
	defer halt()
	r.halt = halt
	// The reader is not waited for: nothing can interrupt the read of a pipe
	// or a terminal, and after an error the process is about to end.
	var reader errgroup.Group
	reader.Go(func() error {
		defer close(r.input)
		r.readErr = r.read(reading, in)
		return nil
	})
	work.Go(func() error { return r.dispatch(ctx, reading, work) })
	work.Go(func() error { return r.follow(ctx, work) })
	work.Go(func() error { return r.print(ctx) })
	if err := work.Wait(); err != nil {
		return err
	}
	return r.submitErr
}

// read cuts the input into batches. While no further line is there it doesn't
// wait for a batch to fill up.
func (r *lineRun) read(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, mostPayload)
	b, bytes, number := &lineBatch{first: 1, done: make(chan struct{})}, 0, 0
	for {
		line, err := lines.next()
		if err == nil {
			number++
			spec := r.flags.spec
			spec.Payload = line
			b.specs, bytes = append(b.specs, spec), bytes+len(line)
			if len(b.specs) < batchJobs && bytes < batchBytes && lines.waiting() {
				continue
			}
		}
		if len(b.specs) > 0 {
			select {
			case r.input <- b:
			case <-ctx.Done():
				return nil // another stage has the reason
			}
			b, bytes = &lineBatch{first: number + 1, done: make(chan struct{})}, 0
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line %d: %w", number+1, err)
		}
	}
}

// dispatch has the batches submitted, as many at once as batches holds.
func (r *lineRun) dispatch(ctx, reading context.Context, work *errgroup.Group) error {
	defer close(r.batches)
	for {
		select {
		case b, ok := <-r.input:
			if !ok {
				return nil
			}
			select {
			case r.batches <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			work.Go(func() error {
				defer close(b.done)
				if b.err = r.submit(ctx, b); b.err != nil {
					r.halt()
				}
				return nil
			})
		case <-reading.Done():
			return nil
		}
	}
}

// follow makes an entry of each line in order, and with --wait has its end awaited.
func (r *lineRun) follow(ctx context.Context, work *errgroup.Group) error {
	defer close(r.entries)
	for b := range r.batches {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.err != nil && r.submitErr == nil {
			r.submitErr = b.err
		}
		for i, answer := range b.answers {
			entry := &lineEntry{line: b.first + i, receipt: answer.Receipt, ready: make(chan struct{})}
			select {
			case r.entries <- entry:
			case <-ctx.Done():
				return ctx.Err()
			}
			r.settle(ctx, work, entry, answer.Err)
		}
	}
	return nil
}

// settle makes an entry ready, now or when its job has ended.
func (r *lineRun) settle(ctx context.Context, work *errgroup.Group, entry *lineEntry, err error) {
	switch {
	case err != nil:
		entry.end = &outcome{}
		entry.end.fail(err)
	case r.flags.wait.given:
		work.Go(func() error {
			defer close(entry.ready)
			entry.end = await(ctx, r.server, entry.receipt.ID, time.Duration(r.flags.wait.most))
			return nil
		})
		return
	}
	close(entry.ready)
}
