package pool

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state/payload"
)

// Spool takes a result that is too large for memory. It must be ended by Commit or
// Abort; after Commit, Abort does nothing.
type Spool interface {
	io.Writer
	// Commit makes the result durable.
	Commit() (payload.Ref, error)
	// Keep returns the result for storing it later, after an error of Commit; false =
	// that is not possible.
	Keep() (queue.Kept, bool)
	Abort()
}

var _ hostcall.Contents = (*slot)(nil)

// commitWithin is how long after the end of its guest an attempt may take to make its
// result durable, regardless of its deadline.
const commitWithin = 45 * time.Second

// contents are the payload and the result of an attempt if they are not in memory.
type contents struct {
	ctx    context.Context // ends with the attempt and at its deadline
	cancel context.CancelCauseFunc
	timer  *time.Timer
	input  io.Closer // nil = not opened
	output Spool     // nil = none
}

// open returns the contents of the running attempt. It is called only if there are
// any.
func (s *slot) open(at *hostcall.Attempt) *contents {
	if s.contents == nil {
		c := &contents{}
		c.ctx, c.cancel = context.WithCancelCause(s.ctx)
		c.timer = time.AfterFunc(time.Until(at.Deadline), func() { c.cancel(context.DeadlineExceeded) })
		s.contents = c
	}
	return s.contents
}

// OpenInput implements [hostcall.Contents].
func (s *slot) OpenInput(at *hostcall.Attempt) (io.Reader, error) {
	c := s.open(at)
	input, err := s.pool.cfg.Queue.OpenInput(c.ctx, s.lease.Job)
	if err != nil {
		return nil, err
	}
	c.input = input
	return input, nil
}

// Spill implements [hostcall.Contents].
func (s *slot) Spill(at *hostcall.Attempt) (io.Writer, error) {
	c := s.open(at)
	output, err := s.pool.cfg.Spool(c.ctx, int64(at.Limits.OutputBytes))
	if err != nil {
		return nil, err
	}
	c.output = output
	return output, nil
}

// endContents completes the contents of an attempt: a successful result is made
// durable before the success is announced.
func (s *slot) endContents(report *queue.Report) {
	c := s.contents
	defer s.dropContents()
	if lost := s.attempt.Loss(); lost != nil {
		if s.ctx.Err() != nil {
			report.Outcome = s.attempt.Stopped(s.ctx)
		} else {
			report.Fault = faultOf(lost)
		}
	}
	if c.output == nil || report.Outcome.Kind != jobhost.OutcomeSucceeded {
		return
	}
	c.timer.Reset(commitWithin)
	ref, err := c.output.Commit()
	switch {
	case err == nil:
		report.Result = &ref
	case s.ctx.Err() != nil:
		report.Outcome = s.attempt.Stopped(s.ctx)
	default:
		kept, can := c.output.Keep()
		if report.Kept = kept; can {
			return
		}
		report.Outcome, report.Fault = s.attempt.Lost(err), faultOf(err)
	}
}

// faultOf returns the payload store's fault in an error; nil = there is none.
func faultOf(err error) *queue.StoreFault {
	fault, _ := errors.AsType[*queue.StoreFault](err)
	return fault
}

// dropContents frees the contents; a result that was not made durable is removed.
func (s *slot) dropContents() {
	c := s.contents
	if c == nil {
		return
	}
	s.contents, s.ctx = nil, nil
	if c.input != nil {
		_ = c.input.Close() // it was only read
	}
	if c.output != nil {
		c.output.Abort()
	}
	c.timer.Stop()
	c.cancel(context.Canceled)
}
