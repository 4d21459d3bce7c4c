package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

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
		Short: "Run the host that a manifest describes, until it is told to stop",
		Long: `Run the host that a manifest describes, until it is told to stop.

SIGINT or SIGTERM stops it in good order: nothing more is admitted, running
tasks may finish for host.shutdown_timeout, the rest goes back to the queue
without counting as an attempt. A second signal ends it at once. Whatever was
acknowledged is there at the next start, also after a crash.`,
		Example: "  jobhost run -f manifest.toml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := manifest.Load(e.manifestPath())
			if err != nil {
				return err
			}
			return runHost(cmd.Context(), e, m)
		},
	}
}

// runHost runs a host with its API until a signal comes.
func runHost(ctx context.Context, e *env, m *manifest.Manifest) (err error) {
	logger := newLogger(e.stderr, m.Host.LogLevel, m.Host.LogFormat)
	for _, warning := range m.Warnings {
		logger.Warn("manifest", logkey.Reason, warning.Error())
	}
	ctx, stop := untilSignal(ctx, logger)
	defer stop()

	cfg, err := host.FromManifest(m)
	if err != nil {
		return err
	}
	cfg.Logger, cfg.Metrics = logger, metrics.New()
	relaxed := m.Host.Durability == manifest.Relaxed
	cfg.Metrics.SetRelaxed(relaxed)
	if relaxed {
		logger.Warn("durability is relaxed: what is acknowledged can be lost when the machine stops")
	}
	store, err := openStore(&m.Host, sqlitedb.Observer{Commit: cfg.Metrics.StoreCommit}, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cfg.Store = store
	if cfg.Engine, err = openEngine(m.Host.Data, logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Engine.Close(context.WithoutCancel(ctx))) }()
	h, err := host.New(cfg)
	if err != nil {
		return err
	}
	return serve(ctx, e, m, h, cfg.Metrics, logger)
}

// serve runs the host and its API side by side; the end of one ends the other.
func serve(ctx context.Context, e *env, m *manifest.Manifest, h *host.Host, met *metrics.Metrics, logger *slog.Logger) error {
	token, err := api.LoadOrCreateToken(m.Host.TokenFile)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Host.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	face, err := api.New(api.Config{
		Server:       h,
		Token:        token,
		AllowedHosts: m.Host.AllowedHosts,
		MaxPayload:   m.Host.MaxPayload,
		Logger:       logger,
		Metrics:      met.Handler(),
		Ready:        h.Ready,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	root := scope.New(context.WithoutCancel(ctx), "jobhost")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The errors of the two are kept as they are, for people: a scope would add its name.
	var hostErr, faceErr error
	err = errors.Join(
		root.Go("host", func(context.Context) error {
			defer cancel()
			hostErr = h.Run(ctx)
			return nil
		}),
		root.Go("api", func(context.Context) error {
			defer cancel()
			faceErr = face.Serve(ctx, listener, api.ServeConfig{Logger: logger})
			return nil
		}),
		root.Go("greeting", func(context.Context) error { return greet(ctx, e, m, h, listener.Addr()) }),
	)
	report, _ := root.Join(context.Background()) // without an end it waits to the end
	return errors.Join(err, hostErr, faceErr, report.Err())
}

// greet prints what was loaded, where the host listens and what to try first,
// when the host is ready.
func greet(ctx context.Context, e *env, m *manifest.Manifest, h *host.Host, addr net.Addr) error {
	if h.AwaitReady(ctx) != nil {
		return nil //nolint:nilerr // the host says why
	}
	workers, err := h.Workers(ctx)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	fmt.Fprintf(e.stderr, "\n%s\n", version.Get().String())
	for _, w := range workers {
		fmt.Fprintf(e.stderr, "  worker  %-14s %s\n", w.Name, shortPath(w.Plugin))
	}
	store := "in memory, gone when the host stops"
	if m.Host.Store.Dir != "" {
		store = fmt.Sprintf("%s, %s", shortPath(m.Host.Store.Dir), m.Host.Durability)
	}
	fmt.Fprintf(e.stderr, "  store   %s\n  token   %s\n  listen  http://%s\n\n", store, shortPath(m.Host.TokenFile), addr)
	fmt.Fprintf(e.stderr, "Try in another terminal:\n  %s\n\n", firstCommand(e, m, addr))
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

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A
// second one ends the process.
func untilSignal(ctx context.Context, logger *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	watch := scope.New(context.WithoutCancel(ctx), "signals")
	_ = watch.Go("signals", func(end context.Context) error {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 {
					logger.Error("second signal: stopping at once", logkey.Signal, s.String())
					os.Exit(1)
				}
				logger.Info("stopping", logkey.Signal, s.String())
				cancel(fmt.Errorf("signal %s", s))
			case <-end.Done():
				return nil
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		watch.Cancel(nil)
		cancel(nil)
	}
}

// newLogger returns the host's logger.
func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
