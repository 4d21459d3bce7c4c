package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// spaceEvery is how often the free space is checked, which takes one system call.
const spaceEvery = 250 * time.Millisecond

// watchSpace refuses new jobs while the disk has less room than it should, so
// that those that were taken can still be settled: their results, records
// and logs need room too. It takes them again when there is a tenth more. The
// store may find out before that its disk is full, by a write that failed.
func (r *running) watchSpace(ctx context.Context) error {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for nearly := false; ; {
		nearly = r.host.lookAtSpace(nearly)
		r.refuse(nearly)
		r.lookAtPayloadSpace()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// refuse makes the queue refuse new jobs for the reason there is now, or take them.
func (r *running) refuse(nearly bool) {
	reason, _ := errors.AsType[*jobhost.Error](storeFull(r.host.cfg.Store))
	if reason == nil && nearly {
		reason = &jobhost.Error{
			Code:       jobhost.CodeUnavailable,
			Field:      jobhost.FieldDisk,
			Message:    fmt.Sprintf("the disk is nearly full: it has less than %v free, which host.min_free keeps", manifest.Size(r.host.cfg.MinFree)),
			Hint:       "free space on it; jobs are taken again by themselves",
			RetryAfter: 5 * time.Second,
		}
	}
	r.Queue.Refuse(reason)
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
func storeFull(s record.Store) error {
	if store, ok := s.(record.Roomy); ok {
		return store.Full()
	}
	return nil
}

// lacksRoom reports whether an error says that the disk of the store is full.
func lacksRoom(err error) bool {
	e, ok := errors.AsType[*jobhost.Error](err)
	return ok && e.Code == jobhost.CodeUnavailable && e.Field == jobhost.FieldDisk
}

// lookAtPayloadSpace refuses new large payloads while the disk that they are for has
// less room than it should: those that were taken need it for their results. Small jobs
// are still taken.
func (r *running) lookAtPayloadSpace() {
	h := r.host
	if r.objects == nil || h.cfg.MinFree <= 0 {
		return
	}
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
			Field: jobhost.FieldDisk,
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

// Impaired describes what doesn't work at the moment although the host takes jobs: payload
// stores that are away or nearly full. It is empty when everything works.
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

// Admits returns nil when the host takes new jobs, and otherwise an error with
// code unavailable that says why not. It names no workers: a probe needs no token.
func (h *Host) Admits() error {
	if err := h.ready(h.loading.counts); err != nil {
		return err
	}
	if r := h.running.Load(); r != nil {
		if refusal := r.Queue.Refusal(); refusal != nil {
			return refusal
		}
	}
	return nil
}
