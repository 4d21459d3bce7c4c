package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/logkey"
)

// spaceEvery is how often somebody looks at the free space. A look is one call
// of the system.
const spaceEvery = 250 * time.Millisecond

// watchSpace refuses new jobs while the disk has less room than it should, so
// that those that were taken can still be settled: their results, records
// and logs need room too. It takes them again when there is a tenth more. The
// store may find out before that its disk is full, by a write that failed.
func (h *Host) watchSpace(r *running) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(spaceEvery)
		defer tick.Stop()
		for nearly := false; ; {
			nearly = h.lookAtSpace(nearly)
			h.refuse(r, nearly)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// refuse makes the queue refuse new jobs for the reason there is now, or take them.
func (h *Host) refuse(r *running, nearly bool) {
	reason, _ := errors.AsType[*jobhost.Error](h.storeFull())
	if reason == nil && nearly {
		reason = &jobhost.Error{
			Code:       jobhost.CodeUnavailable,
			Field:      jobhost.FieldDisk,
			Message:    fmt.Sprintf("the disk is nearly full: it has less than %v free, which host.min_free keeps", manifest.Size(h.cfg.MinFree)),
			Hint:       "free space on it; jobs are taken again by themselves",
			RetryAfter: 5 * time.Second,
		}
	}
	r.queue.Refuse(reason)
}

// lookAtSpace reports whether the disk is nearly full, which it was at the last look
// or not.
func (h *Host) lookAtSpace(was bool) bool {
	if h.cfg.FreeSpace == nil || h.cfg.MinFree <= 0 {
		return false
	}
	free, err := h.cfg.FreeSpace()
	if err != nil {
		h.cfg.Logger.Warn("free space can't be told", logkey.Error, err)
		return was
	}
	h.cfg.Metrics.SetFreeSpace(free)
	switch {
	case free < h.cfg.MinFree && !was:
		h.cfg.Logger.Error("the disk is nearly full: new jobs are refused", logkey.Bytes, free, logkey.Limit, h.cfg.MinFree)
		return true
	case was && free >= h.cfg.MinFree+h.cfg.MinFree/10:
		h.cfg.Logger.Info("the disk has room again: new jobs are taken", logkey.Bytes, free)
		return false
	}
	return was
}

// storeFull returns why the store takes nothing new; nil = it does.
func (h *Host) storeFull() error {
	if store, ok := h.cfg.Store.(queue.Roomy); ok {
		return store.Full()
	}
	return nil
}

// lacksRoom reports whether an error says that the disk of the store is full.
func lacksRoom(err error) bool {
	e, ok := errors.AsType[*jobhost.Error](err)
	return ok && e.Code == jobhost.CodeUnavailable && e.Field == jobhost.FieldDisk
}

// Admits returns nil when the host takes new jobs, and otherwise an error with
// code unavailable that says why not.
func (h *Host) Admits() error {
	if err := h.Ready(); err != nil {
		return err
	}
	if r := h.running.Load(); r != nil {
		if refusal := r.queue.Refusal(); refusal != nil {
			return refusal
		}
	}
	return nil
}
