package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// submit submits a batch. Jobs that find the queue full are tried again until
// there is room. The error is for the batch as a whole; b has no answers then.
func (r *lineRun) submit(ctx context.Context, b *lineBatch) error {
	answers := make([]jobhost.Submitted, len(b.specs))
	open := make([]int, len(b.specs)) // the specs without an answer
	for i := range open {
		open[i] = i
	}
	last := b.first + len(b.specs) - 1
	for {
		got, err := r.attempt(ctx, b, open)
		if err != nil {
			return fmt.Errorf("submit lines %d to %d: %w", b.first, last, err)
		}
		var full error
		still := open[:0]
		for i, at := range open {
			answers[at] = got[i]
			switch err := got[i].Err; jobhost.CodeOf(err) {
			case jobhost.CodeExhausted:
				still, full = append(still, at), err
			case jobhost.CodeUnavailable: // so it will be for the next line: said once
				return fmt.Errorf("submit lines %d to %d: %w", b.first, last, err)
			}
		}
		if open = still; len(open) == 0 {
			b.answers, b.specs = answers, nil
			return nil
		}
		if err := r.waitForRoom(ctx, full); err != nil {
			return err
		}
	}
}

// attempt submits some specs of a batch and returns an answer for each.
func (r *lineRun) attempt(ctx context.Context, b *lineBatch, which []int) ([]jobhost.Submitted, error) {
	specs := make([]jobhost.Spec, len(which))
	for i, at := range which {
		specs[i] = b.specs[at]
	}
	answers, err := r.server.SubmitBatch(ctx, specs)
	if jobhost.CodeOf(err) == jobhost.CodeExhausted {
		answers = make([]jobhost.Submitted, len(specs))
		for i := range answers {
			answers[i].Err = err
		}
		return answers, nil
	}
	if err == nil && len(answers) != len(specs) {
		err = fmt.Errorf("the server gave %d answers to %d jobs", len(answers), len(specs))
	}
	return answers, err
}

// waitForRoom waits as long as the server asked for.
func (r *lineRun) waitForRoom(ctx context.Context, full error) error {
	select {
	case r.fullNoted <- struct{}{}:
		r.env.note("%v; waiting for room", full)
	default: // said before
	}
	wait := time.Second
	if e, ok := errors.AsType[*jobhost.Error](full); ok && e.RetryAfter > 0 {
		wait = e.RetryAfter
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
