// Package guests holds small WebAssembly modules for tests and benchmarks of
// the native ABI, as bytes. Their sources are in src/; build.sh rebuilds them.
package guests

import (
	_ "embed"

	"github.com/jobhost/jobhost/internal/noop"
)

// Noop has the smallest possible jh_run: no input, no output.
var Noop = noop.Module

// Echo returns its input through a mailbox of 64 KiB.
//
//go:embed echo.wasm
var Echo []byte

// SHA256 returns the SHA-256 of its input of up to 1 MiB, in hex: work that takes time.
//
//go:embed sha256.wasm
var SHA256 []byte

// Outcomes has an entry for each way an attempt can go: see src/outcomes.c.
//
//go:embed outcomes.wasm
var Outcomes []byte

// Words counts words, and does something else if its payload says "fail", "binary" or
// "lines"; if there are several tasks, each returns its number. See src/words.c.
//
//go:embed words.wasm
var Words []byte

// Effects has an entry for each call about keys, values and further jobs: see
// src/effects.c.
//
//go:embed effects.wasm
var Effects []byte

// Ops has an entry for each way to wait for requests, timers and children: see
// src/ops.c.
//
//go:embed ops.wasm
var Ops []byte

// States has an entry for each call about the states of tasks and about the
// messages to fibers: see src/states.c.
//
//go:embed states.wasm
var States []byte

// Fiber publishes the messages that it receives, and does what they ask for: see src/fiber.c.
//
//go:embed fiber.wasm
var Fiber []byte

// Exit calls WASI: jh_run exits with the code in its payload; streams, flood,
// sleep and random do what their names say.
//
//go:embed exit.wasm
var Exit []byte

// Init returns how often it was initialised.
//
//go:embed init.wasm
var Init []byte

// InitTable changes a table in its initialisation, and returns 2 if that was
// done, 1 if not.
//
//go:embed init_table.wasm
var InitTable []byte

// InitSpin never leaves its initialisation.
//
//go:embed init_spin.wasm
var InitSpin []byte

// InitTrap logs a line and traps in its initialisation.
//
//go:embed init_trap.wasm
var InitTrap []byte

// Canary has two entries: plant leaves marks in memory, globals and
// descriptors, look reports which of them it finds; 00 = none.
//
//go:embed canary.wasm
var Canary []byte

// CanaryTable does the same with a table, segments and the size of the table,
// which can't be reset: its look returns clean or found.
//
//go:embed canary_table.wasm
var CanaryTable []byte

// Calls has entries that call the host in an endless loop: see src/calls.wat.
//
//go:embed calls.wasm
var Calls []byte

// SIMD needs vectors: it returns its input of up to 64 KiB with the letters a to z
// in upper case.
//
//go:embed simd.wasm
var SIMD []byte

// Command is a WASI command: the first line of its input says what to do, which
// is most of what Outcomes has entries for.
//
//go:embed command.wasm
var Command []byte

// Extism is an Extism plugin with most of the entries of Outcomes.
//
//go:embed extism.wasm
var Extism []byte

// ExtismJS has the exports of a plugin made by Extism's kit for JavaScript: see
// src/extism_js.wat.
//
//go:embed extism_js.wasm
var ExtismJS []byte

// ExtismFills is an Extism plugin whose entries, reset and reuse, make its kernel
// clear memory endlessly.
//
//go:embed extism_fills.wasm
var ExtismFills []byte

// LibC is a WASI command with a libc: see src/libc.c.
//
//go:embed libc.wasm
var LibC []byte

// Cat is a WASI command that copies its input to its output: see src/cat.c.
//
//go:embed cat.wasm
var Cat []byte
