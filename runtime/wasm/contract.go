package wasm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// maxEntries bounds the exports that can be called; a module that was linked
// with everything exported has more than anybody can mean.
const maxEntries = 1000

// checkMemory looks at the memory that the module declares.
func (p *Plugin) checkMemory(o *outline) error {
	if len(o.memories) == 0 {
		return invalid("define one and export it as \"memory\"", "has no memory of its own")
	}
	memory := o.memories[0]
	p.info.MemoryMin = memory.min * pageBytes
	if memory.hasMax {
		p.info.MemoryMax = memory.max * pageBytes
	}
	if limit := uint64(p.limits.MemoryBytes); p.info.MemoryMin > limit {
		return invalid("raise the worker's memory limit", "needs at least %s of memory, the limit is %s",
			mebibytes(p.info.MemoryMin), mebibytes(limit))
	}
	return nil
}

// checkImports finds what the host doesn't offer, before anything is compiled.
func (p *Plugin) checkImports(o *outline) error {
	for _, i := range o.imports {
		name := i.module + "." + i.name
		shown := hostcall.Escape([]byte(name), 200)
		if i.kind != 0 {
			return invalid("a worker has its own memory and tables; link it as a module that stands alone",
				"imports %s, which is not a function", shown)
		}
		p.info.Imports = append(p.info.Imports, shown)
		host := p.runtime.Module(i.module)
		if host == nil {
			return invalid(moduleHint(i.module), "imports %s, but this host has no module %s",
				shown, hostcall.Escape([]byte(i.module), 100))
		}
		if _, ok := host.ExportedFunctionDefinitions()[i.name]; !ok {
			return invalid(fmt.Sprintf("module %s has %s", i.module, strings.Join(functionNames(host), ", ")),
				"imports %s, which this host doesn't offer", shown)
		}
	}
	slices.Sort(p.info.Imports)
	p.info.Imports = slices.Compact(p.info.Imports)
	return nil
}

func functionNames(m api.Module) []string {
	var names []string
	for name := range m.ExportedFunctionDefinitions() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func moduleHint(module string) string {
	hint := "workers import from " + jobabi.Module + " and " + wasi_snapshot_preview1.ModuleName
	switch {
	case strings.HasPrefix(module, "wasi:"):
		hint += "; build for wasm32-wasip1, not wasip2"
	case module == "env":
		hint += "; a function that is declared but never defined is imported from env"
	case strings.HasPrefix(module, "extism"):
		hint += "; this host doesn't run Extism plugins"
	}
	return hint
}

// checkContract compares the types of imports and the exports with the ABI.
func (p *Plugin) checkContract(entry string) error {
	for _, f := range p.module.ImportedFunctions() {
		module, name, _ := f.Import()
		want := p.runtime.Module(module).ExportedFunctionDefinitions()[name]
		if got, offered := signature(f), signature(want); got != offered {
			return invalid("see docs/abi.md", "imports %s.%s as %s, the host's is %s", module, name, got, offered)
		}
	}
	if _, ok := p.module.ExportedMemories()[jobabi.Memory]; !ok {
		return invalid("export it", "doesn't export its memory as \"memory\"")
	}
	exports := p.module.ExportedFunctions()
	for name, f := range exports {
		want, known := map[string]string{
			jobabi.Initialize: "() → ()", jobabi.Wake: "() → ()",
			jobabi.Buffer: "(i32) → i32", jobabi.Run: entrySignature,
		}[name]
		if got := signature(f); known && got != want {
			return invalid("see docs/abi.md", "exports %s as %s instead of %s", name, got, want)
		} else if got == entrySignature {
			p.info.Entries = append(p.info.Entries, name)
		}
	}
	slices.Sort(p.info.Entries)
	if n := len(p.info.Entries); n > maxEntries {
		return invalid("don't export everything", "exports %d functions that can be called, more than %d", n, maxEntries)
	}
	_, p.mailbox = exports[jobabi.Buffer]
	return p.checkEntry(entry, exports)
}

const entrySignature = "(i32) → i64"

// checkEntry settles which export is called by default.
func (p *Plugin) checkEntry(entry string, exports map[string]api.FunctionDefinition) error {
	p.info.Entry = entry
	if entry == "" {
		p.info.Entry = jobabi.Run
	}
	p.entries = make(map[string]int, len(p.info.Entries)+1)
	for i, name := range p.info.Entries {
		p.entries[name] = i
	}
	if i, ok := p.entries[p.info.Entry]; ok {
		p.entries[""] = i
		return nil
	}
	shown := hostcall.Escape([]byte(p.info.Entry), 100)
	if f, ok := exports[p.info.Entry]; ok {
		return invalid("an entry takes the length of the input and returns a place: see docs/abi.md",
			"exports %s as %s instead of %s", shown, signature(f), entrySignature)
	}
	hint := entryNames(p.info.Entries)
	if _, ok := exports["_start"]; ok && len(p.info.Entries) == 0 {
		hint = "it is a WASI command with a main function; build it as a reactor that exports " + jobabi.Run
	}
	return invalid(hint, "has no export %s", shown)
}

// entryNames says what could be called instead.
func entryNames(entries []string) string {
	if len(entries) == 0 {
		return "it exports no function of the type " + entrySignature
	}
	const most = 20
	shown := strings.Join(entries[:min(len(entries), most)], ", ")
	if len(entries) > most {
		shown += ", …"
	}
	return "it exports " + hostcall.Escape([]byte(shown), 1000)
}

// signature writes a type like (i32, i32) → i64.
func signature(f api.FunctionDefinition) string {
	results := typeNames(f.ResultTypes())
	if len(f.ResultTypes()) != 1 {
		results = "(" + results + ")"
	}
	return "(" + typeNames(f.ParamTypes()) + ") → " + results
}

func typeNames(types []api.ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return strings.Join(names, ", ")
}

// mebibytes writes a size of memory for people.
func mebibytes(n uint64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }
