package main

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
)

// tail shows what workers log, attempt by attempt, until ctx ends.
func (d *dev) tail(ctx context.Context, h *readyHost) error {
	for ctx.Err() == nil {
		for e, err := range h.Events(ctx, jobhost.EventQuery{}) {
			if err != nil && ctx.Err() == nil && h.Ready() == nil {
				d.env.note("not all that was logged is shown: %v", err)
			}
			if err != nil {
				break
			}
			if endsAttempt(e.Kind) {
				d.showLog(ctx, h, &e)
			}
		}
		if h.Ready() != nil {
			return nil //nolint:nilerr // it is not a fault that the host stops
		}
	}
	return nil
}

// endsAttempt reports whether an attempt's log is complete with the event.
func endsAttempt(kind jobhost.EventKind) bool {
	switch kind {
	case jobhost.EventSucceeded, jobhost.EventDead, jobhost.EventRetrying, jobhost.EventSnoozed, jobhost.EventReturned:
		return true
	}
	return false
}

// showLog shows the log of the attempt that the event ended, and how it failed.
func (d *dev) showLog(ctx context.Context, h *readyHost, e *jobhost.Event) {
	name := fmt.Sprintf("%s %s", printable(e.Worker), printable(e.Job))
	logs, err := h.Logs(ctx, e.Job)
	if err != nil {
		return // the job was deleted meanwhile
	}
	for i := range logs {
		if l := &logs[i]; l.Task == e.Task && l.Attempt == e.Attempt {
			for _, line := range l.Lines {
				d.env.tagged(name, line)
			}
			if l.Dropped > 0 {
				d.env.tagged(name, plural(int(l.Dropped), "line")+" over the limits dropped")
			}
		}
	}
	if e.Failure != nil {
		d.env.tagged(name, fmt.Sprintf("attempt %d failed: %s", e.Attempt, clip(failureText(e.Failure))))
	}
}
