package host

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// spaceEvery is how often somebody looks at the free space. A look is one call
// of the system.
const spaceEvery = 250 * time.Millisecond

// watchSpace refuses new jobs while the disk has less room than it should, so
// that those that were taken can still be settled: their results, records
// and logs need room too. It takes them again when there is a tenth more.
func (h *Host) watchSpace(r *running) func(context.Context) error {
	return func(ctx context.Context) error {
		if h.cfg.MinFree <= 0 {
			return nil
		}
		tick := time.NewTicker(spaceEvery)
		defer tick.Stop()
		for {
			if h.cfg.FreeSpace != nil {
				h.lookAtSpace(r)
			}
			if r.objects != nil {
				h.lookAtPayloadSpace(r)
			}
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

// lookAtPayloadSpace refuses new large payloads while the disk that they are for has
// less room than it should: those that were taken need it for their results. Small jobs
// are taken as ever.
func (h *Host) lookAtPayloadSpace(r *running) {
	free, known, err := h.cfg.Payloads.Free()
	switch store := h.cfg.Payloads.Target(); {
	case err != nil:
		h.cfg.Logger.Warn("free space of a payload store can't be told", logkey.Payloads, store, logkey.Error, err)
	case !known:
	case free < h.cfg.MinFree && r.objects.Refusal() == nil:
		h.cfg.Logger.Error("the disk of the payload store is nearly full: large payloads are refused",
			logkey.Payloads, store, logkey.Bytes, free, logkey.Limit, h.cfg.MinFree)
		r.objects.Refuse(&jobhost.Error{
			Code:  jobhost.CodeUnavailable,
			Field: fieldDisk,
			Message: fmt.Sprintf("the disk of payload store %s is nearly full: it has less than %v free, which host.min_free keeps",
				store, manifest.Size(h.cfg.MinFree)),
			Hint:       "free space on it; large payloads are taken again by themselves",
			RetryAfter: 5 * time.Second,
		})
	case free >= h.cfg.MinFree+h.cfg.MinFree/10 && r.objects.Refusal() != nil:
		h.cfg.Logger.Info("the disk of the payload store has room again: large payloads are taken", logkey.Payloads, store, logkey.Bytes, free)
		r.objects.Refuse(nil)
	}
}

// Impaired returns what of a host that takes jobs doesn't work now, for people: payload
// stores that are away or nearly full. It is empty when all does.
func (h *Host) Impaired() []string {
	r := h.running.Load()
	if r == nil || r.objects == nil {
		return nil
	}
	var all []string
	if refusal := r.objects.Refusal(); refusal != nil {
		all = append(all, refusal.Message)
	}
	for _, away := range r.objects.Absent() {
		doing := "can't be read"
		if away.Verb == payload.Put {
			doing = "takes nothing"
		}
		all = append(all, fmt.Sprintf("payload store %s %s since %s", away.Store, doing, away.Since.UTC().Format(time.RFC3339)))
	}
	return all
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
