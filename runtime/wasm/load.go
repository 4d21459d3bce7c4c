package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// Load checks, rewrites and compiles a plugin. Faults of the file are errors
// with code [jobhost.CodeInvalid] that say what to do about them. Compiling
// can't be interrupted, so ctx is only checked before it.
func (e *Engine) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	e.loading.RLock()
	defer e.loading.RUnlock()
	if e.closed {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the engine is closed"}
	}
	wasm := src.Bytes
	p := &Plugin{engine: e, source: src, limits: src.Limits.OrDefaults(), turn: make(chan struct{}, 1)}
	p.limits.MemoryBytes = wholePages(p.limits.MemoryBytes)
	err := p.load(ctx, wasm)
	p.source.Bytes, p.source.Linked = nil, nil // a plugin doesn't retain them
	if err != nil {
		_ = p.free(context.WithoutCancel(ctx)) // the reason why it was not loaded is what counts
		return nil, named(src, err)
	}
	e.keep(p)
	return p, nil
}

func (p *Plugin) load(ctx context.Context, wasm []byte) error {
	if err := checkFeatures(p.source.Features); err != nil {
		return err
	}
	m, err := p.read(wasm)
	if err != nil {
		return err
	}
	if err := p.describe(wasm, m); err != nil {
		return err
	}
	modules, err := p.linked(m)
	if err != nil {
		return err
	}
	if err := p.abi.contract(p, m, p.source.Entry); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.translate(ctx, modules); err != nil {
		return err
	}
	return p.settleIsolation()
}

// checked is a module whose imports are available. estimate is the cost of compiling it.
type checked struct {
	name     string
	module   *module.Module
	estimate preflight.Estimate
}

// linked returns all modules of the plugin in the order in which to instantiate
// them, the main one last.
func (p *Plugin) linked(main *module.Module) ([]checked, error) {
	abi, can := p.abi.(*extismABI)
	if len(p.source.Linked) == 0 {
		return []checked{{module: main}}, p.abi.imports(main)
	}
	if !can {
		return nil, jobhost.Invalid("", "link them into one file", "comes with other modules, which only Extism plugins can have")
	}
	var modules []checked
	var names []extismabi.Linked
	for _, l := range p.source.Linked {
		m, err := p.read(l.Bytes)
		if err != nil {
			return nil, ofLinked(l.Name, err)
		}
		abi.names = append(abi.names, l.Name)
		modules = append(modules, checked{name: l.Name, module: m})
		names = append(names, extismabi.Linked{Name: l.Name, Imports: m.Imports})
	}
	modules = append(modules, checked{module: main})
	order, err := extismabi.Order(append(names, extismabi.Linked{Imports: main.Imports}))
	if err != nil {
		return nil, err
	}
	ordered := make([]checked, len(order))
	for i, n := range order {
		ordered[i] = modules[n]
		if err := p.abi.imports(modules[n].module); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// ofLinked says which module an error is about, unless it is the main one.
func ofLinked(name string, err error) error {
	if name == "" || err == nil {
		return err
	}
	return fmt.Errorf("linked module %s: %w", text.Line(name, 100), err)
}

// read checks the structure of a module, before anything trusts it.
func (p *Plugin) read(wasm []byte) (*module.Module, error) { return preflight.Read(wasm, p.bounds()) }

// bounds are the limits of each module of the plugin.
func (p *Plugin) bounds() preflight.Limits {
	return preflight.Limits{
		MemoryPages:  int(p.limits.MemoryBytes / pageBytes),
		TableEntries: int(p.limits.TableEntries),
		CompileBytes: p.limits.CompileBytes,
		Vectors:      slices.Contains(p.source.Features, runtime.FeatureSIMD),
	}
}

// add prepares a checked module for the compiler.
func (p *Plugin) add(c *checked) (err error) {
	m := c.module
	part := &part{name: c.name, once: p.abi.once(m), cramped: p.cramps(m)}
	switch part.rewritten, err = rewrite.Rewrite(m, rewrite.Options{Once: part.once, Interval: p.interval(), Linked: p.linkedNames()}); {
	case errors.Is(err, rewrite.ErrName), errors.Is(err, rewrite.ErrTooLarge):
		return jobhost.Invalid("", "", "can't be metered: %v", err)
	case err != nil:
		return jobhost.Invalid("", rebuild, "is not a valid WebAssembly module: %v", err)
	}
	if err := p.weigh(c, part.rewritten.Module); err != nil {
		return err
	}
	if err := checkData(m, part.rewritten); err != nil {
		return err
	}
	p.unrestorable = cmp.Or(p.unrestorable, part.rewritten.Unrestorable)
	p.parts = append(p.parts, part)
	return nil
}

// linkedNames returns the names of the plugin's modules that others may import from.
func (p *Plugin) linkedNames() []string {
	var names []string
	for _, l := range p.source.Linked {
		names = append(names, l.Name)
	}
	return names
}

// interval is the fuel between two yields of a guest. A memory access is one
// unit and may take microseconds, if it is the first one to a page. The default
// memory has as many pages as the default interval has units; a guest with more
// memory yields more often.
func (p *Plugin) interval() int {
	if p.limits.MemoryBytes <= rewrite.DefaultInterval*4096 {
		return rewrite.DefaultInterval
	}
	return rewrite.DefaultInterval / 2
}

// cramps reports whether the maximum that a module declares leaves no room for
// the memory that earlier jobs grew: see [snapshot.Memory.Outgrown].
func (p *Plugin) cramps(m *module.Module) bool {
	limit := p.limits.MemoryBytes
	return len(m.Memories) > 0 && m.Memories[0].HasMax && int64(m.Memories[0].Max)*pageBytes < limit+limit/4
}

// describe determines what the module is.
func (p *Plugin) describe(wasm []byte, m *module.Module) error {
	sum := sha256.Sum256(wasm)
	p.info.SHA256 = hex.EncodeToString(sum[:])
	p.info.Size = len(wasm)
	if len(m.Memories) > 0 {
		p.info.MemoryMin = uint64(m.Memories[0].Min) * pageBytes
		if m.Memories[0].HasMax {
			p.info.MemoryMax = uint64(m.Memories[0].Max) * pageBytes
		}
	}
	for _, i := range m.Imports {
		p.info.Imports = append(p.info.Imports, text.Line(i.Module+"."+i.Name, 200))
	}
	slices.Sort(p.info.Imports)
	p.info.Imports = slices.Compact(p.info.Imports)

	p.info.ABI = p.source.ABI
	if p.info.ABI == "" || p.info.ABI == runtime.ABIAuto {
		p.info.ABI = detect(m)
	}
	if p.abi, p.streams = abiNamed(p.info.ABI); p.abi == nil {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: "asks for the unknown ABI " + text.Line(p.info.ABI, 50),
			Hint: "use " + strings.Join(runtime.ABIs(), ", ") + " or " + runtime.ABIAuto,
		}
	}
	return nil
}

// checkData checks that the data segments fit, which the rewrite left to the host.
func checkData(m *module.Module, r *rewrite.Result) error {
	size := uint64(0)
	if len(m.Memories) > 0 {
		size = uint64(m.Memories[0].Min) * pageBytes
	}
	for _, d := range r.Data {
		if end := uint64(d.Offset) + uint64(len(d.Bytes)); end > size {
			return jobhost.Invalid("", "", "has data up to byte %d of its memory, which begins with %d bytes", end, size)
		}
	}
	return nil
}

// settleIsolation decides what applies between jobs.
func (p *Plugin) settleIsolation() error {
	if p.source.Isolation == "" {
		p.source.Isolation = runtime.IsolateJob
	}
	p.info.Isolation = p.source.Isolation
	if p.source.Isolation == runtime.IsolateJob {
		p.info.Replaced = p.unrestorable
	}
	if p.info.Entry == startExport && p.info.Isolation == runtime.IsolateInstance {
		return jobhost.Invalid("", "use the isolation job, or write it as a worker with entries: see docs/abi.md",
			"is a command: its main function can't run twice in one instance")
	}
	return nil
}

// wholePages rounds a limit up to pages, of which there are fewer than 65,536.
func wholePages(n int64) int64 {
	pages := n / pageBytes
	if n%pageBytes > 0 {
		pages++
	}
	return min(max(pages, 0), maxPages) * pageBytes
}

const rebuild = "this host runs WebAssembly 2.0, without threads, tail calls, exceptions and garbage collection"

// named prefixes the message with the name of the plugin's file, or of the
// worker if there is none. Several errors are combined, with the hint of the
// first.
func named(src runtime.Source, err error) error {
	subject := "the plugin of worker " + src.Worker
	if src.Path != "" {
		subject = filepath.Base(src.Path)
	}
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok {
		return fmt.Errorf("load %s: %w", subject, err)
	}
	message := e.Message
	if err != error(e) {
		message = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	e.Message = strings.TrimSpace(subject + " " + text.Clip(message, maxText))
	e.Hint = text.Clip(e.Hint, maxText)
	return e
}

// maxText bounds error texts about a plugin, in bytes: the number and length of
// its imports and exports are its author's choice.
const maxText = 2000
