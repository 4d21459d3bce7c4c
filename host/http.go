package host

import (
	"fmt"
	"time"

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

// Open returns a running pool that sends requests; whoever gets it stops it.
func (g *HTTP) Open() (netproxy.Pool, error) {
	client, err := netproxy.New(g.Config)
	if err != nil {
		return nil, err
	}
	pool := &requests{client: client, Processor: netproxy.NewProcessor(netproxy.ProcessorConfig{
		Client: client, MaxConnections: g.MaxConnections, MaxBuffered: g.MaxBuffered,
	})}
	return pool, pool.Start()
}

// openHTTP returns what sends a worker's requests; nil = it may send none.
func (h *Host) openHTTP(w *Worker) (netproxy.Pool, error) {
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

// requests are those of one version of a worker.
type requests struct {
	*netproxy.Processor
	client *netproxy.Client
}

// Stop implements [netproxy.Pool]; the version's connections are closed too.
func (r *requests) Stop(timeout time.Duration) error {
	defer r.client.Close()
	return r.Processor.Stop(timeout)
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
func deferringWorker() Worker {
	return Worker{
		Name:          jobhost.HTTPWorker,
		Isolation:     runtime.IsolateInstance,
		PoolSize:      deferred.Slots,
		QueueCapacity: deferred.Capacity,

		ConcurrencyPerKey: deferred.PerWorker,

		Limits: runtime.Limits{Timeout: deferred.Timeout},
		Retry:  deferred.Retry(),
		defers: true,
	}
}
