package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// stop ends what start began, as far as it came. What runs is stopped first of all if the store
// has failed: another host may run it already.
func (h *Host) stop(root *scope.Scope) error {
	if h.cfg.Store.Err() != nil {
		root.Cancel(hostcall.ErrReturned)
	}
	h.swap.Lock()
	h.become(Draining)
	r := h.running.Load() // the last one: nothing is swapped any more
	if r != nil {
		r.Queue.Stop()
		r.Registry.Stop()
	}
	h.swap.Unlock()
	if err := h.drain(root); err != nil {
		if busy := h.busy(); busy > 0 {
			h.cfg.Logger.Warn("running tasks go back to the queue", logkey.Count, busy, logkey.Reason, err)
		}
	}
	h.become(Stopping)
	if store, ok := h.cfg.Store.(record.Roomy); ok {
		store.GiveUp() // there may be no room for a long time
	}
	root.Cancel(hostcall.ErrReturned)
	report, err := root.Join(context.Background())
	if report.Status == scope.StatusFailed {
		err = errors.Join(err, report.Err())
	}
	// A reload that was compiling finds that it came too late, and closes what
	// it has loaded. None begins after it.
	_, _ = op.PerformRaw(h.reloading.Acquire())
	if r != nil {
		err = errors.Join(err, r.Queue.Close(context.Background()))
	}
	if h.states != nil {
		h.states.Close()
	}
	return errors.Join(err, storeError(h.cfg.Store))
}

var errHandOver = errors.New("another host goes on with them")

// drain lets running tasks finish. The error says why it did not wait for all of them: the
// time is up, or the store has failed and could not keep their results.
func (h *Host) drain(root *scope.Scope) error {
	timeout, cause := h.cfg.ShutdownTimeout, fmt.Errorf("they did not end within %v", h.cfg.ShutdownTimeout)
	if h.cfg.HandOver != nil && h.cfg.HandOver() {
		timeout, cause = 0, errHandOver
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, cause)
	defer cancel()
	_, err := op.Perform(ctx, op.Choice(
		root.JoinOp(),
		op.Wrap(op.Closed(h.cfg.Store.Failed()), func(struct{}) (scope.Report, error) { return scope.Report{}, storeError(h.cfg.Store) }),
	))
	return err
}

// busy is how many tasks run.
func (h *Host) busy() int {
	n := 0
	if r := h.running.Load(); r != nil {
		for _, w := range r.workers() {
			n += w.pool.Busy()
		}
	}
	return n
}

// storeError says why the store has failed; nil if it has not.
func storeError(s record.Store) error {
	switch err := s.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, record.ErrTermOver): // which is no fault of the store
		return err
	default:
		return fmt.Errorf("the store has failed: %w", err)
	}
}
