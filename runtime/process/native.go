package process

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"google.golang.org/grpc/status"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process/cgroup"
)

// NativeConfig configures an engine of native plugins.
type NativeConfig struct {
	// Guard is the command that starts a plugin within its limits, and kills everything it has started when it or
	// the host ends: a program that calls [ServeGuard], with its arguments.
	Guard []string
	// StartTime is how long a plugin may take for the handshake and for describing itself; 0 = 10 s.
	StartTime time.Duration
	Observer  Observer     // nil = none
	Logger    *slog.Logger // nil = nothing is logged
}

// Natives implements [runtime.Engine]: it runs executables that speak the protocol of workers.
type Natives struct {
	*engine

	guard     []string
	startTime time.Duration
	// space reports whether guards may have a PID namespace of their own.
	space func() bool
}

var _ runtime.Engine = (*Natives)(nil)

// NewNatives returns an engine of native plugins. Close frees it.
func NewNatives(cfg NativeConfig) (*Natives, error) {
	if len(cfg.Guard) == 0 {
		return nil, errors.New("open the engine of native plugins: there is no command to guard them")
	}
	e, err := newEngine(cfg.Logger, cfg.Observer)
	if err != nil {
		return nil, err
	}
	n := &Natives{engine: e, guard: cfg.Guard, startTime: cmp.Or(cfg.StartTime, startTime)}
	n.space = sync.OnceValue(func() bool { return n.try() == nil })
	return n, nil
}

// try starts a guard with nothing to guard, in a PID namespace of its own.
func (n *Natives) try() error {
	cmd := &exec.Cmd{Path: n.guard[0], Args: append([]string{filepath.Base(n.guard[0])}, n.guard[1:]...), SysProcAttr: guardAttributes(true), Env: []string{}}
	if err := n.spawner.start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Load implements [runtime.Engine]: the plugin is started and asked what it can do.
func (n *Natives) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	if len(src.Linked) > 0 {
		return nil, jobhost.Invalid("plugin", "a native plugin is one file", "a native plugin has no linked modules")
	}
	sum := sha256.Sum256(src.Bytes)
	p := &native{engine: n, source: src, info: runtime.Info{
		SHA256: hex.EncodeToString(sum[:]), Size: len(src.Bytes), ABI: runtime.ABIProcess, Isolation: runtime.IsolateInstance,
	}}
	var err error
	if p.program, err = seal(filepath.Base(src.Path), src.Bytes); err != nil {
		return nil, err
	}
	p.source.Bytes = nil // the sealed copy is run
	p.supervisor = newSupervisor(n.engine, src.Worker, true, func(ctx context.Context) (*child, error) {
		ch, _, err := p.start(ctx)
		return ch, err
	})
	first, described, err := p.start(ctx)
	if err != nil {
		return nil, errors.Join(err, p.program.Close())
	}
	if err := p.describe(described); err != nil {
		first.close()
		return nil, errors.Join(err, p.program.Close())
	}
	p.supervisor.launchAll(first, max(src.Processes, 1))
	return p, nil
}

// Close implements [runtime.Engine].
func (n *Natives) Close(context.Context) error { return n.close() }

// native is a plugin that is an executable.
type native struct {
	engine     *Natives
	source     runtime.Source
	program    *os.File // its verified copy
	supervisor *supervisor
	info       runtime.Info
}

// start starts a process, asks what it can do and opens its stream.
func (p *native) start(ctx context.Context) (_ *child, d *protocol.DescribeResponse, err error) {
	ch, err := p.engine.startChild(ctx, p.command(), p.engine.startTime)
	if err != nil {
		return nil, nil, jobhost.Invalid("plugin", "see docs/processes.md", "plugin %s does not start: %v", filepath.Base(p.source.Path), startFault(err, p.engine.startTime))
	}
	defer func() {
		if err != nil {
			ch.close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, p.engine.startTime)
	defer cancel()
	d, err = ch.worker.Describe(ctx, &protocol.DescribeRequest{
		Protocol: link.Protocol, Host: version.Get().Version, Worker: p.source.Worker, Config: p.source.Config, Slots: uint32(max(p.source.Slots, 1)),
	})
	if err != nil {
		return nil, nil, jobhost.Invalid("plugin", "see docs/processes.md", "plugin %s can't say what it does: %v", filepath.Base(p.source.Path), statusText(ch.explain(err)))
	}
	if d.GetProtocol() != link.Protocol {
		return nil, nil, jobhost.Invalid("plugin", "build it with the SDK of this version of jobhost",
			"plugin %s speaks version %d of the protocol, and this host speaks version %d", filepath.Base(p.source.Path), d.GetProtocol(), link.Protocol)
	}
	if err := ch.open(); err != nil {
		return nil, nil, err
	}
	return ch, d, nil
}

// command is what starts the plugin: the guard, which gets the program as descriptor 3.
func (p *native) command() *command {
	src := p.source
	limits := src.Limits.OrDefaults()
	guard := guardArgs{Memory: limits.MemoryBytes, Name: filepath.Base(src.Path), Args: src.System.Args}
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8", "JOBHOST_WORKER=" + src.Worker,
	}
	if zone, ok := os.LookupEnv("TZ"); ok {
		env = append(env, "TZ="+zone)
	}
	for _, name := range slices.Sorted(maps.Keys(src.Env)) {
		env = append(env, name+"="+src.Env[name])
	}
	return &command{
		path: p.engine.guard[0], args: append(append([]string{filepath.Base(p.engine.guard[0])}, p.engine.guard[1:]...), guard.encode()...),
		env: env, dir: filepath.Dir(src.Path), files: []*os.File{p.program}, encrypted: true,
		sys: guardAttributes(p.engine.space()), gentle: !p.engine.space(),
		bound: cgroup.Limits{Memory: guardBytes + limits.MemoryBytes, Processes: maxProcesses},
		line:  func(line string) { p.engine.logger.Info("plugin says", logkey.Worker, src.Worker, "line", line) },
	}
}

// describe adopts what the plugin says about itself.
func (p *native) describe(d *protocol.DescribeResponse) error {
	entries := d.GetEntries()
	if len(entries) > maxEntries {
		return jobhost.Invalid("plugin", "", "plugin %s has %d entries, more than %d", filepath.Base(p.source.Path), len(entries), maxEntries)
	}
	for _, name := range entries {
		if len(name) > jobhost.MaxEntryBytes {
			return jobhost.Invalid("plugin", "", "plugin %s has an entry with a name of %d bytes, more than %d", filepath.Base(p.source.Path), len(name), jobhost.MaxEntryBytes)
		}
		if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
			return jobhost.Invalid("plugin", "", "plugin %s has an entry %q, which no job can name", filepath.Base(p.source.Path), name)
		}
	}
	p.info.Entries = slices.Compact(slices.Sorted(slices.Values(entries)))
	switch entry := p.source.Entry; {
	case entry != "" && !slices.Contains(entries, entry):
		return jobhost.Invalid("plugin", "it has "+strconv.Quote(fmt.Sprint(p.info.Entries)), "plugin %s has no entry %s", filepath.Base(p.source.Path), entry)
	case entry != "":
		p.info.Entry = entry
	case len(entries) > 0:
		p.info.Entry = entries[0]
	}
	return nil
}

const maxEntries = 1000

// Info implements [runtime.Plugin].
func (p *native) Info() runtime.Info { return p.info }

// Instantiate implements [runtime.Plugin].
func (p *native) Instantiate(context.Context) (runtime.Instance, error) {
	return p.supervisor.join(), nil
}

// Close implements [runtime.Plugin].
func (p *native) Close(context.Context) error {
	p.supervisor.stop()
	return p.program.Close()
}

// OnDisabled implements [runtime.Fallible].
func (p *native) OnDisabled(notify func(reason string)) { p.supervisor.onDisabled(notify) }

// Enable implements [runtime.Fallible].
func (p *native) Enable() { p.supervisor.enable() }

var _ runtime.Fallible = (*native)(nil)

// startFault says, in our own words, why a plugin doesn't start.
func startFault(err error, within time.Duration) string {
	said := err.Error()
	if _, rest, ok := strings.Cut(said, "incompatible API version with plugin. "); ok {
		var theirs int
		if n, _ := fmt.Sscanf(rest, "Plugin version: %d", &theirs); n > 0 {
			return fmt.Sprintf("it speaks version %d of the protocol, and this host speaks version %d", theirs, link.Protocol)
		}
	}
	if strings.HasPrefix(said, "Unrecognized remote plugin message: \nFailed to read any lines") {
		_, how, _ := strings.Cut(said, " (")
		said = "plugin exited before we could connect (" + how
	}
	for from, to := range map[string]string{
		"timeout while waiting for plugin to start": fmt.Sprintf("it has not shaken hands within %v", within),
		"plugin exited before we could connect":     "it ended before it had shaken hands",
		"Unrecognized remote plugin message":        "the first line that it printed is no handshake",
	} {
		if rest, ok := strings.CutPrefix(said, from); ok {
			said = to + rest
		}
	}
	return text.Line(said, maxLine)
}

// statusText returns the text of a gRPC error.
func statusText(err error) string {
	if s, ok := status.FromError(err); ok {
		return text.Line(s.Message(), maxLine)
	}
	return text.Line(err.Error(), maxLine)
}
