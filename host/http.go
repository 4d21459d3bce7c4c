package host

import (
	"fmt"
	"net/netip"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/deferred"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
)

// HTTP is where a worker may go, and how much it may send.
type HTTP struct {
	netproxy.Config
	// MaxConnections bounds the requests that are under way at one time, and
	// MaxBuffered the bytes of their bodies; 0 = netproxy's defaults.
	MaxConnections int
	MaxBuffered    int64
}

// openHTTP returns what sends a worker's requests; nil = it may send none. Whoever
// gets it stops it.
func (h *Host) openHTTP(w *Worker) (netproxy.Pool, error) {
	if w.HTTP == nil {
		return nil, nil
	}
	cfg := w.HTTP.Config
	cfg.Logger = h.cfg.Logger.With(logkey.Worker, w.Name)
	cfg.Observer = h.cfg.Metrics.HTTP(w.Name)
	cfg.Forbidden = h.listens
	client, err := netproxy.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("worker %s: http: %w", w.Name, err)
	}
	pool := netproxy.NewProcessor(netproxy.ProcessorConfig{
		Client: client, MaxConnections: w.HTTP.MaxConnections, MaxBuffered: w.HTTP.MaxBuffered,
	})
	if err := pool.Start(); err != nil {
		return nil, fmt.Errorf("worker %s: http: %w", w.Name, err)
	}
	return pool, nil
}

// listens returns where the host itself listens: no request of a worker reaches that.
func (h *Host) listens() []netip.AddrPort {
	if h.cfg.Listens == nil {
		return nil
	}
	return h.cfg.Listens()
}

// poolOf returns what sends the requests of a worker, for those that it has
// deferred; false = there is no such worker now.
func (h *Host) poolOf(name string) (netproxy.Pool, bool) {
	r := h.running.Load()
	if r == nil || r.workers[name] == nil {
		return nil, false
	}
	return r.workers[name].pool.HTTP()
}

// deferringWorker is the host's own worker for requests that others leave to it.
func deferringWorker() Worker {
	return Worker{
		Name:          jobhost.HTTPWorker,
		Isolation:     runtime.IsolateInstance,
		PoolSize:      deferred.Slots,
		QueueCapacity: deferred.Capacity,
		Limits:        runtime.Limits{Timeout: deferred.Timeout},
		Retry:         deferred.Retry(),
		defers:        true,
	}
}
