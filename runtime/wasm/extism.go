package wasm

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasiabi"
	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

// extismABI runs Extism plugins: see docs/extism.md.
type extismABI struct {
	kernel *extismabi.Kernel
	names  []string // of the modules that others may import
	entry  string
}

func (a *extismABI) define(ctx context.Context, r wazero.Runtime) (err error) {
	if err := wasiabi.Instantiate(ctx, r); err != nil {
		return err
	}
	a.kernel, err = extismabi.Define(ctx, r)
	return err
}

func (a *extismABI) once(m *module.Module) []string {
	return extismabi.Initializers(functionTypes(m), a.entry)
}

func (*extismABI) signature() string { return "() → i32" }

func (a *extismABI) contract(p *Plugin, m *module.Module, entry string) error {
	p.info.Entries = extismabi.Entries(functionTypes(m))
	a.entry = cmp.Or(entry, extismabi.DefaultEntry(p.info.Entries))
	if a.entry == "" && len(p.info.Entries) > 1 {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "entry", Message: "has several exports that can be called",
			Hint: "set the worker's entry to one of " + strings.Join(p.info.Entries, ", "),
		}
	}
	return p.chooseEntry(m, entry, extismabi.DefaultEntry(p.info.Entries), a.signature(), "an entry of an Extism plugin takes nothing and returns a number or nothing")
}

func (a *extismABI) guest(ctx context.Context, i *Instance) (guest, error) {
	source := &i.plugin.source
	limits := source.Extism
	limit := max(wholePages(cmp.Or(limits.MemoryBytes, i.plugin.limits.MemoryBytes)), pageBytes)
	limits.MemoryBytes = limit
	memory, err := snapshot.New(uint64(limit), nil)
	if err != nil {
		return nil, err
	}
	plugin, err := a.kernel.NewPlugin(ctx, extismabi.Options{
		Limits:   limits,
		Memory:   memory,
		KeepVars: source.Isolation == runtime.IsolateInstance,
	})
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	i.frame.extism = plugin
	return &extismGuest{i: i, plugin: plugin, memory: memory, limit: limit}, nil
}

// extismGuest calls an Extism plugin.
type extismGuest struct {
	i       *Instance
	plugin  *extismabi.Plugin
	memory  *snapshot.Memory // of the plugin's kernel
	limit   int64            // of that memory, in bytes
	entries []callee
	spent   bool // its main function has run
	stack   [1]uint64
}

func (g *extismGuest) resolver(ctx context.Context) context.Context {
	return experimental.WithImportResolver(ctx, g.plugin.Resolve)
}

func (g *extismGuest) link(name string, m api.Module) {
	if name != "" {
		g.plugin.Link(name, m)
	}
}

func (g *extismGuest) attach() { g.entries = g.i.callees(g.i.plugin.info.Entries) }

func (g *extismGuest) initialise() error {
	// What the plugin allocated in the kernel while it initialised is dropped,
	// as in Extism before each call.
	g.plugin.Reset()
	return nil
}

// clean does what Extism does between two calls. A main function runs only once.
func (g *extismGuest) clean() bool {
	g.plugin.Reset()
	return !g.spent
}

func (g *extismGuest) failed(at *hostcall.Attempt) (jobhost.Outcome, bool) {
	if outcome, ok := at.Failed(); ok {
		return outcome, true
	}
	return g.plugin.Failed(at)
}

func (g *extismGuest) refused() bool  { return g.plugin.Refused() }
func (*extismGuest) remember() any    { return nil }
func (g *extismGuest) reset(any) bool { return !g.plugin.Outgrown() && g.plugin.Reset() }

func (g *extismGuest) close(ctx context.Context) error {
	return errors.Join(g.plugin.Close(ctx), g.memory.Close())
}

func (g *extismGuest) call(entry int, at *hostcall.Attempt) (jobhost.Outcome, error) {
	if outcome, failed := at.LoadInput(g.limit); failed {
		return outcome, nil
	}
	if failure := g.plugin.Begin(at); failure != nil {
		return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: failure}, nil
	}
	g.stack[0] = 0
	g.spent = g.entries[entry].name == extismabi.Start
	err := g.entries[entry].call(g.stack[:])
	rc := api.DecodeU32(g.stack[0])
	if exit, ok := errors.AsType[*wasiabi.Exit](err); ok {
		rc, err = exit.Code, nil
	}
	if err != nil {
		return jobhost.Outcome{}, err
	}
	return g.plugin.End(at, rc), nil
}
