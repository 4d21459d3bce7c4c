package wasm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// maxEntries bounds the exports that can be called; a module linked with
// everything exported has more than its author can intend.
const maxEntries = 1000

// functionTypes returns the types of the exported functions by name, except
// those that the module imports.
func functionTypes(m *module.Module) map[string]module.FuncType {
	types := map[string]module.FuncType{}
	for _, e := range m.Exports {
		own := e.Kind == module.KindFunction && int(e.Index) >= m.Imported[module.KindFunction]
		if t, ok := m.FunctionType(e.Index); ok && own {
			types[e.Name] = t
		}
	}
	return types
}

// exportsMemory checks that the host can reach the guest's memory.
func exportsMemory(m *module.Module) error {
	switch {
	case len(m.Memories) == 0:
		return jobhost.Invalid("", "define one and export it as \"memory\"", "has no memory of its own")
	case !preflight.ExportsMemory(m, "memory"):
		return jobhost.Invalid("", "export it", "doesn't export its memory as \"memory\"")
	}
	return nil
}

// chooseEntry determines which export is called by default, out of those that
// the ABI found: entry, or the ABI's own if that is empty.
func (p *Plugin) chooseEntry(m *module.Module, entry, own, want, hint string) error {
	if n := len(p.info.Entries); n > maxEntries {
		return jobhost.Invalid("", "don't export everything", "exports %d functions that can be called, more than %d", n, maxEntries)
	}
	if entry == "" {
		entry = own
	}
	p.info.Entry = entry
	p.entries = make(map[string]int, len(p.info.Entries)+1)
	for i, name := range p.info.Entries {
		p.entries[name] = i
	}
	if i, ok := p.entries[entry]; ok {
		p.entries[""] = i
		return nil
	}
	if entry == "" {
		return jobhost.Invalid("", entryNames(p.info.Entries, want), "has no entry, an export that can be called")
	}
	shown := text.Line(entry, 100)
	if got, ok := preflight.Functions(m)[entry]; ok {
		return jobhost.Invalid("", hint, "exports %s as %s instead of %s", shown, got, want)
	}
	return jobhost.Invalid("", entryNames(p.info.Entries, want), "has no export %s", shown)
}

// isOfSomeKind rejects a module that was taken for one of the native ABI only because it
// matched no other.
func (p *Plugin) isOfSomeKind(exports map[string]string, entry string) error {
	if p.source.ABI != "" && p.source.ABI != runtime.ABIAuto || entry != "" {
		return nil
	}
	for _, signature := range exports {
		if signature == entrySignature {
			return nil
		}
	}
	if _, ok := exports[jobabi.Run]; ok {
		return nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(exports)), func(name string) bool { return name == jobabi.Initialize })
	return jobhost.Invalid("", entryNames(names, entrySignature)+"; write it as a worker, see docs/abi.md, or build it as a program with a main function, see docs/wasi.md",
		"is no plugin of any kind: it has no export jh_run, as workers of jobhost have, and no _start, as WASI commands have, and imports nothing from extism:host/env, as Extism plugins do")
}

// entryNames says what could be called instead.
func entryNames(entries []string, want string) string {
	if len(entries) == 0 {
		return "it exports no function of the type " + want
	}
	const most = 20
	shown := strings.Join(entries[:min(len(entries), most)], ", ")
	if len(entries) > most {
		shown += ", …"
	}
	return "it exports " + text.Line(shown, 1000)
}

// mebibytes formats a size of memory for people.
func mebibytes(n uint64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }
