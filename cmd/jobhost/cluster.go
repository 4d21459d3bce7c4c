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
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/state/payload"
)

// clustered is a host that shares its store with others: what outlives the terms in which it leads.
type clustered struct {
	env      *env
	manifest *manifest.Manifest
	metrics  *metrics.Metrics
	logger   *slog.Logger
	beside   map[string]service // run while it leads
	db       *pgdb.DB
	member   *cluster.Member
	token    string
	listener net.Listener
	payloads *payload.Set // nil = all is in the database
	engine   runtime.Engine
	leads    atomic.Pointer[host.Host] // nil = it stands by
	idle     chan struct{}             // says that it stands by; holds one, more would say nothing new
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
	if c.token, err = sharedToken(ctx, c.db, m.Host.TokenFile); err != nil {
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
	c.idle = make(chan struct{}, 1)
	c.member, err = cluster.New(ctx, cluster.Config{
		DB: c.db, Name: m.Cluster.Name, Listen: m.Cluster.Listen, Advertise: m.Cluster.Advertise, StandBy: !m.Cluster.Lead,
		Version: version.Get().Version, Load: c.load, Lead: c.lead, Repeatable: api.Repeatable,
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

// serve runs the member and the API side by side. The end of one ends the other.
func (c *clustered) serve(ctx context.Context) error {
	own, err := api.New(c.apiConfig(func() (jobhost.Server, error) {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host stands by"}
	}))
	if err != nil {
		return errors.Join(err, c.listener.Close(), c.member.Close())
	}
	shared := c.member.Handler()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api.Own(r) {
			own.ServeHTTP(w, r)
			return
		}
		shared.ServeHTTP(w, r)
	})
	c.greet()
	root := scope.New(context.WithoutCancel(ctx), "jobhost")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var memberErr, faceErr error
	err = errors.Join(
		root.Go("cluster", func(context.Context) error {
			defer cancel()
			memberErr = c.member.Run(ctx)
			return nil
		}),
		root.Go("warm", func(context.Context) error { c.warm(ctx); return nil }),
		root.Go("api", func(context.Context) error {
			defer cancel()
			faceErr = api.Serve(ctx, handler, own.Stop, c.listener, api.ServeConfig{Logger: c.logger})
			return nil
		}),
	)
	report, _ := root.Join(context.Background()) // without an end it waits to the end
	return errors.Join(err, memberErr, faceErr, report.Err())
}

func (c *clustered) following(string) {
	select {
	case c.idle <- struct{}{}:
	default: // it is going to
	}
}

// warm compiles the plugins when this host stands by, so that it needn't when it is to lead.
func (c *clustered) warm(ctx context.Context) {
	for {
		select {
		case <-c.idle:
		case <-ctx.Done():
			return
		}
		cfg, err := host.FromManifest(c.current())
		if err != nil {
			c.logger.Warn("read the plugins; this host could not lead now", logkey.Error, err)
			continue
		}
		for i := range cfg.Workers {
			if w := &cfg.Workers[i]; c.leads.Load() == nil && ctx.Err() == nil {
				c.compile(ctx, w)
			}
		}
	}
}

func (c *clustered) compile(ctx context.Context, w *host.Worker) {
	plugin, err := c.engine.Load(ctx, w.Source())
	if err == nil {
		err = plugin.Close(context.WithoutCancel(ctx))
	}
	if err != nil && ctx.Err() == nil {
		c.logger.Warn("load a worker; this host could not lead now", logkey.Worker, w.Name, logkey.Error, err)
	}
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

// ready returns nil while jobs are taken, by this host or by the one that leads.
func (c *clustered) ready() error {
	if h := c.leads.Load(); h != nil {
		return h.Admits()
	}
	return c.member.Ready()
}

// load tells how many tasks this host can run and runs.
func (c *clustered) load() (slots, busy int) {
	if h := c.leads.Load(); h != nil {
		return h.Load()
	}
	return 0, 0
}

// lead is one life of the host, in a term in which it leads.
func (c *clustered) lead(ctx context.Context, term *pgdb.Term) (err error) {
	m := c.current()
	cfg, err := host.FromManifest(m)
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

// live runs a host, and what goes with it once it is ready.
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
	report, _ := root.Join(context.Background()) // without an end it waits to the end
	return errors.Join(err, hostErr, report.Err())
}

// current returns the manifest as it is now, so that a host which begins to lead runs what the leader before it was made
// to run by a reload. One with faults must not keep it from leading.
func (c *clustered) current() *manifest.Manifest {
	m, err := c.manifest.Again(c.env.manifestPath())
	if err != nil {
		c.logger.Warn("the manifest has faults; the host goes on with what it said before", logkey.Error, err)
		return c.manifest
	}
	for _, name := range c.manifest.Changed(m) {
		c.logger.Warn("the setting takes effect when the host is started anew", logkey.Setting, name)
	}
	return m
}

// listens returns where this host listens, which no worker may reach.
func (c *clustered) listens() (all []netip.AddrPort) {
	if tcp, ok := c.listener.Addr().(*net.TCPAddr); ok {
		all = append(all, tcp.AddrPort())
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

// Hosts implements [jobhost.Cluster].
func (c *clustered) Hosts(ctx context.Context) ([]jobhost.HostStatus, error) {
	list, err := c.member.Hosts(ctx)
	hosts := make([]jobhost.HostStatus, len(list))
	for i := range list {
		h := &list[i]
		hosts[i] = jobhost.HostStatus{
			Name: h.Name, Role: h.Role, Epoch: h.Epoch, Address: h.Address, Version: h.Version, Slots: h.Slots, Busy: h.Busy,
			MayLead: h.MayLead, Wanted: h.Wanted, Since: h.Since.UTC(), Seen: jobhost.Duration(h.Seen),
		}
	}
	return hosts, err
}

// DrainHost implements [jobhost.Cluster].
func (c *clustered) DrainHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.asked(ctx, name, c.member.Drain)
}

// LeadHost implements [jobhost.Cluster].
func (c *clustered) LeadHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.asked(ctx, name, c.member.AskToLead)
}

func (c *clustered) asked(ctx context.Context, name string, ask func(context.Context, string) error) (jobhost.HostStatus, error) {
	if err := ask(ctx, name); err != nil {
		return jobhost.HostStatus{}, err
	}
	hosts, err := c.Hosts(ctx)
	for i := range hosts {
		if hosts[i].Name == name {
			return hosts[i], nil
		}
	}
	return jobhost.HostStatus{}, err
}

// sharedToken returns the token that all hosts of a cluster have. The first one offers that of its file, and the files of
// the others get it, so that commands find it.
func sharedToken(ctx context.Context, db *pgdb.DB, path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	own, err := api.LoadOrCreateToken(path)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shared, err := db.Secret(ctx, "token", []byte(own))
	if err != nil {
		return "", err
	}
	token := string(shared)
	if err := api.CheckToken(token); err != nil {
		return "", fmt.Errorf("read token from the database: %w", err)
	}
	if token != own {
		if err := os.WriteFile(path, append(shared, '\n'), 0o600); err != nil {
			return "", fmt.Errorf("write token: %w", err)
		}
	}
	return token, nil
}
