package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/version"
)

func newRunCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the host that a manifest describes, until it is stopped",
		Long: `Run the host that a manifest describes, until it is stopped.

SIGINT or SIGTERM stops it gracefully: no more jobs are admitted, running tasks
have host.shutdown_timeout to finish, and the rest goes back to the queue without
counting as an attempt. A second signal stops it at once. Everything acknowledged
is there at the next start, also after a crash.

SIGHUP reloads the manifest and the plugins, as jobhost worker reload does; errors
are logged, and then nothing changes. A host that stands by checks them, and runs
them when it leads. SIGUSR1 logs the status of the workers.`,
		Example: "  jobhost run -f manifest.toml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := manifest.Load(e.manifestPath())
			if err != nil {
				return err
			}
			return runHost(cmd.Context(), e, m, runOptions{})
		},
	}
}

// readyHost is a host that is ready, with what can be asked of it.
type readyHost struct {
	*host.Host
	jobhost.Server
}

// service runs beside a host until ctx ends or it has an error, which ends the host too.
type service func(ctx context.Context, h *readyHost) error

// runOptions say what else a host is run with.
type runOptions struct {
	services map[string]service // by name
	// hangupStops makes SIGHUP, which the end of a terminal sends, stop the host
	// rather than reload it.
	hangupStops bool
	// spare is an address that any free port may stand in for when it is taken; empty = none.
	spare string
}

// runHost runs a host with its API until a signal comes.
func runHost(ctx context.Context, e *env, m *manifest.Manifest, options runOptions) (err error) {
	e.keepPrivate()
	logger := newLogger(e.stderr, m.Host.LogLevel, m.Host.LogFormat)
	// What net/http has to say of peers goes to the log, where they can't flood it.
	log.SetFlags(0)                                                              //nolint:forbidigo // the logger that net/http has
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer()) //nolint:forbidigo // the same
	for _, warning := range m.Warnings {
		logger.Warn("manifest", logkey.Reason, warning.Error())
	}
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if options.hangupStops {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := untilSignal(ctx, logger, ends...)
	defer stop()
	orders := takeOrders(logger, !options.hangupStops)
	defer orders.forget()

	tellTrust(logger, m)
	counts := metrics.New()
	relaxed := m.Host.Durability == manifest.Relaxed
	counts.SetRelaxed(relaxed)
	if relaxed {
		logger.Warn("durability is relaxed: what is acknowledged can be lost when the machine stops")
	}
	beside := map[string]service{}
	maps.Copy(beside, options.services)
	if m.Host.Store.Driver == manifest.Postgres {
		return runCluster(ctx, &clustered{env: e, manifest: m, metrics: counts, logger: logger, orders: orders, beside: beside}, options.spare)
	}
	beside["orders"] = orders.serve
	return runAlone(ctx, &server{env: e, manifest: m, metrics: counts, logger: logger, spare: options.spare, beside: beside})
}

// runAlone runs a host with a store of its own, until ctx ends.
func runAlone(ctx context.Context, s *server) (err error) {
	m, logger := s.manifest, s.logger
	cfg, err := host.FromManifest(m)
	if err != nil {
		return err
	}
	cfg.Logger, cfg.Metrics = logger, s.metrics
	cfg.Reread = host.Rereader(s.env.manifestPath(), m)
	store, err := openStores(ctx, &m.Host, sqlitedb.Observer{Commit: cfg.Metrics.StoreCommit}, cfg.Metrics.States(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cfg.Store, cfg.States, cfg.FreeSpace = store.jobs, store.states, freeSpace(&m.Host)
	if cfg.Place, err = place(&m.Host); err != nil {
		return err
	}
	if cfg.Payloads, err = openPayloads(&m.Payload, nil, cfg.Metrics.Payload, cfg.Logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Payloads.Close()) }()
	if cfg.Engine, err = openEngine(m.Host.Data, cfg.Metrics.Processes(), logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Engine.Close(context.WithoutCancel(ctx))) }()
	cfg.Listens = s.listens
	over := watchCrashes(&cfg, m.Host.Store.Dir)
	if s.host, err = host.New(cfg); err == nil {
		err = s.serve(ctx)
	}
	return errors.Join(err, over())
}

// server is a host with what stands around it.
type server struct {
	env      *env
	manifest *manifest.Manifest
	host     *host.Host
	metrics  *metrics.Metrics
	logger   *slog.Logger
	spare    string // see [runOptions]
	beside   map[string]service
	bound    atomic.Pointer[netip.AddrPort] // of the API; nil = not yet
}

// listens returns where the API listens, which no worker may reach.
func (s *server) listens() []netip.AddrPort {
	if addr := s.bound.Load(); addr != nil {
		return []netip.AddrPort{*addr}
	}
	return nil
}

// serve runs the host and its API side by side, and the services once the host
// is ready; the end of host or API ends the others.
func (s *server) serve(ctx context.Context) error {
	face, listener, err := s.openAPI(ctx)
	if err != nil {
		return err
	}
	s.beside["greeting"] = func(ctx context.Context, h *readyHost) error { return s.greet(ctx, h, listener.Addr()) }
	root := scope.New(context.WithoutCancel(ctx), "jobhost")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The errors are kept as they are, for people: a scope would add its name.
	var hostErr, faceErr error
	err = errors.Join(
		root.Go("host", func(context.Context) error {
			defer cancel()
			hostErr = s.host.Run(ctx)
			return nil
		}),
		root.Go("api", func(context.Context) error {
			defer cancel()
			faceErr = face.Serve(ctx, listener, api.ServeConfig{Logger: s.logger})
			return nil
		}),
	)
	for name, c := range s.beside {
		err = errors.Join(err, root.Go(name, func(context.Context) error {
			server, err := s.host.AwaitReady(ctx)
			if err != nil {
				return nil //nolint:nilerr // the host says why
			}
			if err := c(ctx, &readyHost{s.host, server}); err != nil && ctx.Err() == nil {
				cancel()
				return err
			}
			return nil
		}))
	}
	report, _ := root.Join(context.Background()) // without an end it waits to the end
	return errors.Join(err, hostErr, faceErr, report.Err())
}

// openAPI makes the API and opens what it listens on.
func (s *server) openAPI(ctx context.Context) (*api.API, net.Listener, error) {
	settings := &s.manifest.Host
	token, err := api.LoadOrCreateToken(settings.TokenFile)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(ctx, settings, s.spare)
	if err != nil {
		return nil, nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
		s.bound.Store(new(tcp.AddrPort()))
	}
	face, err := api.New(api.Config{
		Server:       s.host.Server,
		Token:        token,
		OpenReads:    settings.OpenReads,
		GuardMetrics: !settings.OpenMetrics,
		AllowedHosts: settings.AllowedHosts,
		MaxPayload:   settings.MaxPayload,
		Whole:        s.manifest.Payload.Threshold,
		Logger:       s.logger,
		Metrics:      s.metrics.Handler(),
		Ready:        s.host.Admits,
		Impaired:     s.host.Impaired,
	})
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	return face, listener, nil
}

// greet prints what was loaded, where the host listens and what to try first.
func (s *server) greet(ctx context.Context, workersOf jobhost.WorkerLister, addr net.Addr) error {
	workers, err := workersOf.Workers(ctx)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	w, settings := s.env.stderr, &s.manifest.Host
	fmt.Fprintf(w, "\n%s\n", version.Get().String())
	for i := range workers {
		if workers[i].Plugin == "" {
			continue // the host's own, such as that of webhooks
		}
		fmt.Fprintf(w, "  worker  %-14s %s\n", workers[i].Name, shortPath(workers[i].Plugin))
	}
	store := "in memory, gone when the host stops"
	if settings.Store.Dir != "" {
		store = fmt.Sprintf("%s, %s", shortPath(settings.Store.Dir), settings.Durability)
	}
	fmt.Fprintf(w, "  store   %s\n  token   %s\n  listen  http://%s\n\n", store, shortPath(settings.TokenFile), addr)
	fmt.Fprintf(w, "Try in another terminal:\n  %s\n\n", firstCommand(s.env, s.manifest, addr))
	return nil
}

// firstCommand is a command that works as it is printed, in this folder.
func firstCommand(e *env, m *manifest.Manifest, addr net.Addr) string {
	worker := m.Workers[0].Name
	if i := slices.IndexFunc(m.Workers, func(w manifest.Worker) bool { return w.Name == "wordcount" }); i >= 0 {
		worker = "wordcount"
	}
	binary := filepath.Base(os.Args[0])
	if self, err := os.Executable(); err == nil {
		binary = shortPath(self)
		if filepath.Base(binary) == binary { // a shell would look for it elsewhere
			binary = "." + string(filepath.Separator) + binary
		}
	}
	command := []string{binary, "submit", worker, "hello world", "--wait"}
	if _, err := os.Stat("README.md"); err == nil {
		command[3] = "@README.md"
	}
	// Another terminal has neither this one's flags nor its environment.
	if path := e.manifestPath(); path != defaultManifest {
		command = append(command, "-f", path)
	}
	if strings.HasSuffix(m.Host.Listen, ":0") { // a port that the manifest does not tell
		command = append(command, "--addr", "http://"+addr.String())
	}
	for i := range command {
		command[i] = shellWord(command[i])
	}
	return strings.Join(command, " ")
}

// shellWord quotes a word of a command line if a POSIX shell would not take it
// as it is.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shortPath makes a path relative to the working directory if that is shorter.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// newLogger returns the host's logger.
func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
