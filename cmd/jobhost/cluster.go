package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/state/payload"
)

// clustered is a host that shares its store with others. It has what outlives a term: the database, the API's listener, the
// engine, the payload stores. A term is one call of lead, with a host.Host and stores of its own.
type clustered struct {
	env      *env
	manifest *manifest.Manifest
	metrics  *metrics.Metrics
	logger   *slog.Logger
	orders   *orders
	beside   map[string]service // run beside the host while it leads
	db       *pgdb.DB
	member   *cluster.Member
	token    string
	listener net.Listener
	own      *api.API     // answers what is asked about this host, and strangers
	payloads *payload.Set // nil = payloads are in the database
	engine   runtime.Engine
	checked  atomic.Pointer[manifest.Manifest] // the last manifest without faults; nil = that of the start
	leads    atomic.Pointer[host.Host]         // nil = it stands by
	ending   atomic.Bool                       // it is stopping
	standsBy chan struct{}                     // wakes warm when it stands by; has room for one, more would change nothing
}

// runCluster runs a host that shares its store with others, until ctx ends.
func runCluster(ctx context.Context, c *clustered, spare string) (err error) {
	m := c.manifest
	var member atomic.Pointer[cluster.Member]
	counts := c.metrics.Cluster(func() metrics.ClusterStatus {
		if m := member.Load(); m != nil {
			return metrics.ClusterStatus(m.Status())
		}
		return metrics.ClusterStatus{}
	})
	if c.db, err = openDatabase(ctx, m, c.logger, pgdb.Observer{
		Committed: c.metrics.StoreCommit, Fenced: counts.Fenced, Resolved: counts.Resolved, Lost: counts.Lost,
	}); err != nil {
		return err
	}
	defer c.db.Close()
	if err := migrateAtStart(ctx, c.db); err != nil {
		return err
	}
	if c.token, err = sharedToken(ctx, c.db, m.Host.TokenFile, c.logger); err != nil {
		return err
	}
	if len(m.Payload.Stores) > 0 {
		if c.payloads, err = openPayloads(&m.Payload, c.db, c.metrics.Payload, c.logger); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.payloads.Close()) }()
	}
	if c.engine, err = openEngine(m.Host.Data, c.metrics.Processes(), c.logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.engine.Close(context.WithoutCancel(ctx))) }()
	c.standsBy = make(chan struct{}, 1)
	place, err := sqlitedb.Place(m.Host.Data) // which the engine has made
	if err != nil {
		return err
	}
	if c.own, err = api.New(c.apiConfig(func() (jobhost.Server, error) {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host stands by"}
	})); err != nil {
		return err
	}
	c.member, err = cluster.New(ctx, cluster.Config{
		DB: c.db, Name: m.Cluster.Name, Listen: m.Cluster.Listen, Advertise: m.Cluster.Advertise, StandBy: !m.Cluster.Lead,
		Folder: m.Host.Data, Place: place, Version: version.Get().Version, Load: c.load, Lead: c.lead, Repeatable: api.Repeatable,
		Observer: cluster.Observer{TookOver: counts.TookOver, Following: c.following}, Logger: c.logger,
	})
	if err != nil {
		return err
	}
	member.Store(c.member)
	if c.listener, err = listen(ctx, &m.Host, spare); err != nil {
		return errors.Join(err, c.member.Close())
	}
	return c.serve(ctx)
}

// serve runs the member and the API together. The end of one ends the other.
func (c *clustered) serve(ctx context.Context) error {
	shared := c.member.Handler()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.ending.Load() {
			w.Header().Set("Connection", "close") // the next request goes to another host
		}
		if api.Own(r) || !c.own.Passes(r) {
			c.own.ServeHTTP(w, r)
			return
		}
		shared.ServeHTTP(w, r)
	})
	c.greet()
	root := scope.New(context.WithoutCancel(ctx), "jobhost")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, refuse := context.WithCancel(context.WithoutCancel(ctx))
	defer refuse()
	joined, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	var memberErr, faceErr error
	err := errors.Join(
		root.Go("cluster", func(context.Context) error {
			defer refuse()
			defer cancel()
			memberErr = c.member.Run(joined)
			return nil
		}),
		root.Go("warm", func(context.Context) error { c.warm(ctx); return nil }),
		root.Go("orders", func(context.Context) error {
			c.orders.obey(ctx, func() { c.reload(ctx) }, func() { c.logState(ctx) })
			return nil
		}),
		root.Go("end", func(context.Context) error {
			<-ctx.Done()
			if !c.retire(joined) {
				leave()
			}
			refuse()
			return nil
		}),
		root.Go("api", func(context.Context) error {
			defer leave() // not before forwarded requests are answered
			defer cancel()
			faceErr = api.Serve(serving, handler, func() { c.own.Stop(); c.member.Stop() }, c.listener, api.ServeConfig{Logger: c.logger})
			return nil
		}),
	)
	report, _ := root.Join(context.Background()) // without a deadline there is no error
	return errors.Join(err, memberErr, faceErr, report.Err())
}

// retireTime is how long a host that is stopping waits for the next leader, to which it forwards requests meanwhile.
const retireTime = 5 * time.Second

// retire hands over to another host, and reports whether one has taken over.
func (c *clustered) retire(ctx context.Context) bool {
	c.ending.Store(true)
	ctx, cancel := context.WithTimeout(ctx, retireTime)
	defer cancel()
	return c.member.Retire(ctx)
}

func (c *clustered) apiConfig(server func() (jobhost.Server, error)) api.Config {
	settings := &c.manifest.Host
	return api.Config{
		Server:       server,
		Cluster:      c,
		Token:        c.token,
		OpenReads:    settings.OpenReads,
		GuardMetrics: !settings.OpenMetrics,
		AllowedHosts: settings.AllowedHosts,
		MaxPayload:   settings.MaxPayload,
		Whole:        c.manifest.Payload.Threshold,
		Logger:       c.logger,
		Metrics:      c.metrics.Handler(),
		Ready:        c.ready,
		Impaired: func() []string {
			if h := c.leads.Load(); h != nil {
				return h.Impaired()
			}
			return nil
		},
	}
}

// ready returns nil if jobs are accepted, by this host or by the leader that it reaches.
func (c *clustered) ready() error {
	if c.ending.Load() {
		return errEnding
	}
	if h := c.leads.Load(); h != nil {
		return h.Admits()
	}
	return c.member.Ready()
}

var errEnding = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host is stopping", Hint: "ask another host of the cluster"}

// load returns how many tasks this host can run at a time, and how many it runs.
func (c *clustered) load() (slots, busy int) {
	if h := c.leads.Load(); h != nil {
		return h.Load()
	}
	return 0, 0
}

// lead runs a host during a term.
func (c *clustered) lead(ctx context.Context, term *pgdb.Term) (err error) {
	m, cfg, err := c.current()
	if err != nil {
		return err
	}
	cfg.Logger, cfg.Metrics, cfg.Engine, cfg.Payloads = c.logger, c.metrics, c.engine, c.payloads
	cfg.Reread = host.Rereader(c.env.manifestPath(), m)
	cfg.Listens = c.listens
	cfg.HandOver = func() bool { return term.Err() != nil || c.member.HasSuccessor() }
	stores, err := openShared(ctx, c.db, term)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	cfg.Store, cfg.States = stores.jobs, stores.states
	h, err := host.New(cfg)
	if err != nil {
		return err
	}
	face, err := api.New(c.apiConfig(h.Server))
	if err != nil {
		return err
	}
	defer face.Stop()
	defer context.AfterFunc(ctx, face.Stop)()
	return c.live(ctx, term, h, face)
}

// live runs a host, and once it is ready the services beside it.
func (c *clustered) live(ctx context.Context, term *pgdb.Term, h *host.Host, face *api.API) error {
	c.leads.Store(h)
	defer c.leads.Store(nil)
	root := scope.New(context.WithoutCancel(ctx), "term")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hostErr error
	err := root.Go("host", func(context.Context) error {
		defer cancel()
		hostErr = h.Run(ctx)
		return nil
	})
	services := map[string]service{"serve": func(ctx context.Context, _ *readyHost) error {
		if err := c.member.Serve(term, face, face.Stop); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	}}
	maps.Copy(services, c.beside)
	for name, s := range services {
		err = errors.Join(err, root.Go(name, func(context.Context) error {
			server, err := h.AwaitReady(ctx)
			if err != nil {
				return nil //nolint:nilerr // the host says why
			}
			if err := s(ctx, &readyHost{h, server}); err != nil && ctx.Err() == nil {
				cancel()
				return err
			}
			return nil
		}))
	}
	report, _ := root.Join(context.Background()) // without a deadline there is no error
	return errors.Join(err, hostErr, report.Err())
}

// listens returns where this host listens, and where others find it, which no worker may reach.
func (c *clustered) listens() (all []netip.AddrPort) {
	for _, addr := range []net.Addr{c.listener.Addr(), c.member.Listens()} {
		if tcp, ok := addr.(*net.TCPAddr); ok {
			all = append(all, tcp.AddrPort())
		}
	}
	if peer, err := netip.ParseAddrPort(c.member.Address()); err == nil {
		all = append(all, peer)
	}
	return all
}

func (c *clustered) greet() {
	settings := &c.manifest.Host
	fmt.Fprintf(c.env.stderr, "\n%s\n  host    %s, found by others at %s\n  store   %s\n  token   %s\n  listen  http://%s\n\n",
		version.Get().String(), c.manifest.Cluster.Name, c.member.Address(), settings.Store.URL, shortPath(settings.TokenFile), c.listener.Addr())
}
