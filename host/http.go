package host

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/deferred"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
)

// openHTTP returns what sends a worker's requests; nil = it may send none.
func (h *Host) openHTTP(w *settings) (netproxy.Pool, error) {
	if w.HTTP == nil {
		return nil, nil
	}
	grant := *w.HTTP
	grant.Logger = h.cfg.Logger.With(logkey.Worker, w.Name)
	grant.Observer = h.cfg.Metrics.HTTP(w.Name)
	grant.Forbidden = h.cfg.Listens
	pool, err := grant.Open()
	if err != nil {
		return nil, fmt.Errorf("worker %s: http: %w", w.Name, err)
	}
	return pool, nil
}

// poolOf returns what sends the requests of a worker, for those that it has
// deferred; false = there is no such worker now, or it would not take the
// responses.
func (h *Host) poolOf(name string) (netproxy.Pool, bool) {
	r := h.running.Load()
	if r == nil || r.workers()[name] == nil || r.Queue.Takes(name) != nil {
		return nil, false
	}
	return r.workers()[name].pool.HTTP()
}

// deferringWorker is the host's own worker for requests that others leave to it.
func deferringWorker() settings {
	return settings{defers: true, Worker: Worker{
		Name:          jobhost.HTTPWorker,
		Isolation:     runtime.IsolateInstance,
		PoolSize:      deferred.Slots,
		QueueCapacity: deferred.Capacity,

		ConcurrencyPerKey: deferred.PerWorker,

		Limits: runtime.Limits{Timeout: deferred.Timeout},
		Retry:  deferred.Retry(),
	}}
}
