package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/prune"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process/cgroup"
	"github.com/jobhost/jobhost/runtime/process/loadpb"
)

// SandboxConfig configures an engine that runs Wasm in children.
type SandboxConfig struct {
	// Command starts a sandbox process: a program that calls [ServeSandbox], with its arguments.
	Command []string
	// CacheDir keeps compiled modules across restarts, each plugin's in a folder of its own, so that
	// no sandbox writes what another runs. Empty = they are kept in memory only.
	CacheDir string
	// CompileTime is how much CPU time a process may use to compile and initialise a plugin; 0 = two minutes.
	CompileTime time.Duration
	Observer    Observer     // nil = none
	Logger      *slog.Logger // nil = nothing is logged
}

// Sandboxes implements [runtime.Engine]: it runs Wasm in children of the host.
type Sandboxes struct {
	*engine

	command     []string
	cacheDir    string
	compileTime time.Duration
}

var _ runtime.Engine = (*Sandboxes)(nil)

// NewSandboxes returns an engine that runs Wasm in children. Close frees it.
func NewSandboxes(cfg SandboxConfig) (*Sandboxes, error) {
	if len(cfg.Command) == 0 {
		return nil, errors.New("open the engine of sandbox processes: there is no command to start them")
	}
	e, err := newEngine(cfg.Logger, cfg.Observer)
	if err != nil {
		return nil, err
	}
	if err := prune.Folders(cfg.CacheDir); cfg.CacheDir != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.logger.Warn("old compiled code can't be removed", logkey.Path, cfg.CacheDir, logkey.Error, err)
	}
	return &Sandboxes{engine: e, command: cfg.Command, cacheDir: cfg.CacheDir, compileTime: cmp.Or(cfg.CompileTime, compileTime)}, nil
}

// Load implements [runtime.Engine]: the plugin is checked and compiled in a child.
func (s *Sandboxes) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	cacheDir, err := ofPlugin(s.cacheDir, &src)
	if err != nil {
		return nil, err
	}
	p := &sandboxed{engine: s, source: src, cacheDir: cacheDir}
	p.supervisor = newSupervisor(s.engine, src.Worker, false, func(ctx context.Context) (*child, error) {
		ch, _, err := p.start(ctx)
		return ch, err
	})
	first, info, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	p.info = info
	p.supervisor.launchAll(first, max(src.Processes, 1))
	return p, nil
}

// Close implements [runtime.Engine].
func (s *Sandboxes) Close(context.Context) error { return s.close() }

// sandboxed is a plugin in sandbox processes.
type sandboxed struct {
	engine     *Sandboxes
	source     runtime.Source
	cacheDir   string // of compiled modules, for this plugin alone
	supervisor *supervisor
	info       runtime.Info
}

// start starts a process, loads the plugin in it and opens its stream.
func (p *sandboxed) start(ctx context.Context) (_ *child, info runtime.Info, err error) {
	began := time.Now()
	worker := p.source.Worker
	ch, err := p.engine.startChild(ctx, &command{
		path: p.engine.command[0], args: append([]string{filepath.Base(p.engine.command[0])}, p.engine.command[1:]...),
		env: []string{"GOGC=400", "GOMAXPROCS=" + strconv.Itoa(max(goruntime.GOMAXPROCS(0)/max(p.source.Processes, 1), 1))}, sys: sandboxAttributes(),
		bound: cgroup.Limits{Memory: loadingMemory(&p.source), Processes: maxThreads + slotsOf(&p.source)},
		pipes: true,
		line:  func(line string) { p.engine.logger.Warn("sandbox process says", logkey.Worker, worker, "line", line) },
	}, startTime)
	if err != nil {
		return nil, info, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "a sandbox process does not start", Cause: err}
	}
	defer func() {
		if err != nil {
			ch.close()
		}
	}()
	started := time.Since(began)
	if info, err = ch.load(ctx, &loading{Source: p.source, CacheDir: p.cacheDir, CompileTime: compileTimeOf(p.engine.compileTime, &p.source)}); err != nil {
		return nil, info, err
	}
	if err := ch.letRun(&p.source, &info); err != nil {
		return nil, info, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "a sandbox process can't be given what it needs", Cause: err}
	}
	if err := ch.open(); err != nil {
		return nil, info, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "a sandbox process does not answer", Cause: err}
	}
	p.engine.logger.Debug("sandbox process", logkey.Worker, worker, "pid", ch.process.ID(), "started", started, "loaded", time.Since(began)-started)
	return ch, info, nil
}

// startTime is how long a process may take for the handshake.
const startTime = 10 * time.Second

// loading is what a sandbox process is asked to load.
type loading struct {
	Source   runtime.Source
	CacheDir string // for this plugin alone; empty = none
	// CompileTime is how much CPU time the process may use until the plugin is loaded.
	CompileTime time.Duration
}

// partBytes is the size of the parts in which a source is sent to a process.
const partBytes = 1 << 20

// load makes a sandbox process load a plugin.
func (c *child) load(ctx context.Context, l *loading) (info runtime.Info, err error) {
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(l); err != nil {
		return info, fmt.Errorf("encode the plugin: %w", err)
	}
	// Twice, since other processes may need the CPU, too.
	ctx, cancel := context.WithTimeout(ctx, 2*l.CompileTime+l.Source.Limits.OrDefaults().StartTime)
	defer cancel()
	stream, err := loadpb.NewLoaderClient(c.conn).Load(ctx)
	if err != nil {
		return info, fmt.Errorf("load the plugin in a process: %w", err)
	}
	for part := encoded.Next(partBytes); len(part) > 0; part = encoded.Next(partBytes) {
		if err := stream.Send(&loadpb.Part{Data: part}); err != nil {
			break // CloseAndRecv returns the reason
		}
	}
	loaded, err := stream.CloseAndRecv()
	if err != nil {
		return info, c.died(ctx, err)
	}
	if f := loaded.GetFault(); f != nil {
		return info, &jobhost.Error{Code: jobhost.Code(f.GetCode()), Field: f.GetField(), Message: f.GetMessage(), Hint: f.GetHint()}
	}
	return info, json.Unmarshal(loaded.GetInfo(), &info)
}

// Info implements [runtime.Plugin].
func (p *sandboxed) Info() runtime.Info { return p.info }

// Instantiate implements [runtime.Plugin]. The instance is created by the first attempt.
func (p *sandboxed) Instantiate(context.Context) (runtime.Instance, error) {
	return p.supervisor.join(), nil
}

// Close implements [runtime.Plugin].
func (p *sandboxed) Close(context.Context) error {
	p.supervisor.stop()
	return nil
}

// OnDisabled implements [runtime.Fallible].
func (p *sandboxed) OnDisabled(notify func(reason string)) { p.supervisor.onDisabled(notify) }

// Enable implements [runtime.Fallible].
func (p *sandboxed) Enable() { p.supervisor.enable() }

// receiveSource reassembles a source in the process.
func receiveSource(stream interface{ Recv() (*loadpb.Part, error) }) (*loading, error) {
	var encoded bytes.Buffer
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		encoded.Write(part.GetData())
	}
	l := &loading{}
	return l, gob.NewDecoder(&encoded).Decode(l)
}
