package wasm

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost/runtime/jobabi"
)

// A gate is a tiny module of our own that stands between the host and one
// guest: it imports the guest's entries and exports functions that do nothing
// but call them. It is there for two things that wazero v1.12 does otherwise:
//
//   - A call into a module compiled with WithCloseOnContextDone starts a
//     goroutine to watch the context: 740 ns and 3 allocations. The gate is
//     compiled without it, so a call through it costs 37 ns and allocates
//     nothing. The guest is compiled with it and still asks at each loop
//     header whether to stop.
//   - What it asks then is whether the module at the bottom of the stack was
//     closed: the gate. Closing the gate from another goroutine stops the
//     guest and touches nothing that the guest is using, whereas closing the
//     guest's own module would free its memory and files under its feet.
//
// Guest and gate live in two wazero runtimes, because the flag is one of a
// runtime. They share the engine behind the cache, and their types have the
// same numbers in both because agreeOnTypes was the first to ask for them.
// TestGate fails when a version of wazero changes any of this.

// gateTypes are the types of the functions that pass a gate: (i32) → i64 for
// entries, (i32) → i32 for the mailbox.
var gateTypes = []byte{
	0x00, 'a', 's', 'm', 1, 0, 0, 0,
	1, 11, 2, // type section, 11 bytes, 2 types
	0x60, 1, 0x7f, 1, 0x7e,
	0x60, 1, 0x7f, 1, 0x7f,
}

const (
	entryType  = 0
	bufferType = 1
)

// agreeOnTypes must be the first thing that a runtime compiles.
func (e *Engine) agreeOnTypes(ctx context.Context, r wazero.Runtime) error {
	e.gating.Lock()
	defer e.gating.Unlock()
	err := e.mend(ctx, func() error {
		_, err := r.CompileModule(ctx, gateTypes)
		return err
	})
	if err != nil {
		return fmt.Errorf("compile the types of gates: %w", err)
	}
	return nil
}

// gateModule returns the module that passes on calls to the entries and, if
// there is one, the mailbox.
func gateModule(entries []string, mailbox bool) []byte {
	names, kinds := entries, make([]byte, len(entries))
	if mailbox {
		names = append(names[:len(names):len(names)], jobabi.Buffer)
		kinds = append(kinds, bufferType)
	}
	n := uint64(len(names))
	imports := binary.AppendUvarint(nil, n)
	functions := binary.AppendUvarint(nil, n)
	exports := binary.AppendUvarint(nil, n)
	code := binary.AppendUvarint(nil, n)
	for i, name := range names {
		imports = appendName(imports, "guest")
		imports = appendName(imports, name)
		imports = append(imports, 0, kinds[i]) // a function of this type

		functions = append(functions, kinds[i])

		exports = appendName(exports, name)
		exports = append(exports, 0)                         // a function,
		exports = binary.AppendUvarint(exports, n+uint64(i)) // numbered after the imports

		body := []byte{0, 0x20, 0, 0x10} // no locals; local.get 0; call …
		body = binary.AppendUvarint(body, uint64(i))
		body = append(body, 0x0b) // end
		code = binary.AppendUvarint(code, uint64(len(body)))
		code = append(code, body...)
	}
	module := append([]byte(nil), gateTypes...)
	module = appendSection(module, 2, imports)
	module = appendSection(module, 3, functions)
	module = appendSection(module, 7, exports)
	return appendSection(module, 10, code)
}

// openGate makes the gate of one guest.
func openGate(ctx context.Context, gates wazero.Runtime, gate wazero.CompiledModule, guest api.Module) (api.Module, error) {
	ctx = experimental.WithImportResolver(ctx, func(string) api.Module { return guest })
	m, err := gates.InstantiateModule(ctx, gate, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, fmt.Errorf("open the gate: %w", err)
	}
	return m, nil
}

func appendName(b []byte, name string) []byte {
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

func appendSection(b []byte, id byte, content []byte) []byte {
	b = append(b, id)
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}
