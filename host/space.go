package host

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/logkey"
)

// spaceEvery is how often somebody looks at the free space. A look is one call
// of the system.
const spaceEvery = 250 * time.Millisecond

// watchSpace refuses new jobs while the disk has less room than it should, so
// that those that were taken can still be settled: their results, records
// and logs need room too. It takes them again when there is a tenth more.
func (h *Host) watchSpace(r *running) func(context.Context) error {
	return func(ctx context.Context) error {
		if h.cfg.FreeSpace == nil || h.cfg.MinFree <= 0 {
			return nil
		}
		tick := time.NewTicker(spaceEvery)
		defer tick.Stop()
		for {
			h.lookAtSpace(r)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (h *Host) lookAtSpace(r *running) {
	free, err := h.cfg.FreeSpace()
	if err != nil {
		h.cfg.Logger.Warn("free space can't be told", logkey.Error, err)
		return
	}
	h.cfg.Metrics.SetFreeSpace(free)
	refused := r.queue.Refusal() != nil
	switch {
	case free < h.cfg.MinFree && !refused:
		h.cfg.Logger.Error("the disk is nearly full: new jobs are refused", logkey.Bytes, free, logkey.Limit, h.cfg.MinFree)
		r.queue.Refuse(&jobhost.Error{
			Code:       jobhost.CodeUnavailable,
			Field:      fieldDisk,
			Message:    fmt.Sprintf("the disk is nearly full: it has less than %v free, which host.min_free keeps", manifest.Size(h.cfg.MinFree)),
			Hint:       "free space on it; jobs are taken again by themselves",
			RetryAfter: 5 * time.Second,
		})
	case refused && free >= h.cfg.MinFree+h.cfg.MinFree/10:
		h.cfg.Logger.Info("the disk has room again: new jobs are taken", logkey.Bytes, free)
		r.queue.Refuse(nil)
	}
}

// fieldDisk marks refusals because of the disk.
const fieldDisk = "disk"

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
