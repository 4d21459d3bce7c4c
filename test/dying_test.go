package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	processes "github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// This program is a host, or a sandbox process of one, when its first argument is one of
// these. It is as jobhost run, but for attempts with the payload "die": they end their
// process as a fault of an engine would, which nothing can recover from. Plugins whose
// worker has the configuration "dies" end it earlier, as that says: "load" when they are
// loaded, "load-host" when that is in the host, "start" when they make a sandbox. Those in a host do so
// unless its folder has a file "mended".
const (
	dyingHost    = "dying-host"
	dyingSandbox = "dying-sandbox"
)

// beDying does that, and returns false if this program is a test.
func beDying() bool {
	if len(os.Args) < 2 {
		return false
	}
	switch os.Args[1] {
	case dyingHost:
		if err := runDying(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case dyingSandbox:
		processes.ServeSandbox(func(cache string, logger *slog.Logger) (runtime.Engine, error) { return newDying(cache, logger) })
	default:
		return false
	}
	return true
}

func newDying(cache string, logger *slog.Logger) (runtime.Engine, error) {
	engine, err := wasm.New(wasm.Config{CacheDir: cache, Logger: logger})
	return dying{engine}, err
}

type dying struct{ *wasm.Engine }

func (e dying) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	dies := src.Config["dies"]
	if inHost := os.Args[1] == dyingHost; inHost {
		if _, err := os.Stat("mended"); err == nil {
			dies = ""
		}
		dies = strings.TrimSuffix(dies, "-host")
	}
	if dies == "load" {
		die()
	}
	p, err := e.Engine.Load(ctx, src)
	if err != nil {
		return nil, err
	}
	return dyingPlugin{p, dies == "start"}, nil
}

// die ends the process by a fatal error, which no recover sees.
func die() {
	debug.SetMaxStack(64 << 10)
	deeper(0)
}

type dyingPlugin struct {
	runtime.Plugin
	dies bool
}

func (p dyingPlugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	if p.dies {
		die()
	}
	i, err := p.Plugin.Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	return dyingInstance{i}, nil
}

type dyingInstance struct{ runtime.Instance }

func (i dyingInstance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	if string(at.Input) == "die" {
		die()
	}
	return i.Instance.Run(ctx, at)
}

func deeper(n int) int {
	var page [512]int
	page[n%512] = n
	return page[deeper(n+1)%512] //nolint:staticcheck // without an end, as it is to end the process
}

// runDying runs the host of the manifest in the working directory until SIGTERM.
func runDying() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	m, err := manifest.Load("manifest.toml")
	if err != nil {
		return err
	}
	cfg, err := host.FromManifest(m)
	if err != nil {
		return err
	}
	cfg.Reread = host.Rereader("manifest.toml", m)
	dir := m.Host.Store.Dir
	cfg.Metrics = metrics.New()
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir, Observer: sqlitedb.Observer{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cfg.Store = store
	if cfg.Journal, err = journal.Open(filepath.Join(dir, journal.FileName), func() {}); err != nil {
		return err
	}
	if cfg.Crash, err = crash.Open(dir, cfg.Journal, cfg.Logger); err != nil {
		return err
	}
	if cfg.Engine, err = openDying(dir, cfg.Logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Engine.Close(context.Background())) }()
	h, err := host.New(cfg)
	if err != nil {
		return err
	}
	return errors.Join(serveDying(ctx, h, m), cfg.Crash.Close(), cfg.Journal.Close())
}

func openDying(dir string, logger *slog.Logger) (runtime.Engine, error) {
	inline, err := newDying(filepath.Join(dir, "compiled"), logger)
	if err != nil {
		return nil, err
	}
	sandboxes, err := processes.NewSandboxes(processes.SandboxConfig{
		Command: []string{os.Args[0], dyingSandbox}, CacheDir: filepath.Join(dir, "compiled", "processes"), Logger: logger,
	})
	return &runtime.Engines{Inline: inline, Sandboxes: sandboxes}, err
}

// serveDying runs a host with its API.
func serveDying(ctx context.Context, h *host.Host, m *manifest.Manifest) error {
	token, err := api.LoadOrCreateToken(m.Host.TokenFile)
	if err != nil {
		return err
	}
	face, err := api.New(api.Config{Server: h.Server, Token: token, Ready: h.Admits})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Host.Listen)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() { served <- face.Serve(ctx, listener, api.ServeConfig{}) }()
	err = h.Run(ctx)
	cancel()
	return errors.Join(err, <-served)
}
