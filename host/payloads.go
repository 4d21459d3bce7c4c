package host

import (
	"context"
	"io"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
)

// newObjects returns what keeps large payloads and results, if there are stores
// for them, and adds it to the configuration of the queue.
func (h *Host) newObjects(ctx context.Context, cfg *queue.Config) (*object.Keeper, error) {
	if h.cfg.Payloads == nil {
		return nil, nil
	}
	k, err := object.New(ctx, object.Config{
		Set:       h.cfg.Payloads,
		Store:     h.cfg.Store,
		MaxUpload: h.cfg.MaxUpload,
		OrphanAge: h.cfg.OrphanAge,
		YoungFor:  h.cfg.YoungFor,
		KeepBytes: h.cfg.KeepBytes,
		Away:      h.cfg.Metrics.PayloadStoreAway,
		Kept:      h.cfg.Metrics.SetResultsKept,
		Removed:   h.cfg.Metrics.PayloadsRemoved,
		Place:     h.cfg.Place,
		Contested: h.cfg.Metrics.PayloadsContested,
		Logger:    h.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	cfg.Objects, cfg.Absences, cfg.Threshold = k, k, h.cfg.PayloadThreshold
	return k, nil
}

// spool is how pools keep large results; nil = they have them in memory.
func (r *running) spool() func(context.Context, int64) (pool.Spool, error) {
	k := r.objects
	if k == nil {
		return nil
	}
	return func(ctx context.Context, limit int64) (pool.Spool, error) { return k.Spool(ctx, limit) }
}

// spillBytes is up to which size results are in memory; 0 = all are.
func (h *Host) spillBytes() int {
	if h.cfg.Payloads == nil {
		return 0
	}
	return h.cfg.PayloadThreshold
}

// Upload implements [jobhost.PayloadStorer].
func (r *running) Upload(ctx context.Context, body io.Reader) (jobhost.Upload, error) {
	if err := r.host.Admits(); err != nil { // the disk is nearly full, say
		return jobhost.Upload{}, err
	}
	if r.objects == nil {
		return jobhost.Upload{}, &jobhost.Error{Code: jobhost.CodeInvalid, Message: "this host keeps no uploads"}
	}
	return r.objects.Upload(ctx, &admitted{r, body})
}

// admitted is an upload that ends when the host takes no new jobs any more: it may
// be larger than what was free when it began.
type admitted struct {
	r    *running
	body io.Reader
}

// Read implements [io.Reader].
func (a *admitted) Read(p []byte) (int, error) {
	if err := a.r.host.Admits(); err != nil {
		return 0, err
	}
	if refusal := a.r.objects.Refusal(); refusal != nil {
		return 0, refusal
	}
	return a.body.Read(p)
}
