package config

import (
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// HTTP is where a worker may go, and how much it may send.
type HTTP struct {
	netproxy.Config
	// MaxConnections bounds the requests that are under way at one time, and
	// MaxBuffered the bytes of their bodies; 0 = netproxy's defaults.
	MaxConnections int
	MaxBuffered    int64
}

// Open returns a running pool that sends requests. The caller stops it.
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
