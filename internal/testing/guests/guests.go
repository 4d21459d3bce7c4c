// Package guests holds small WebAssembly modules for tests and benchmarks of
// the native ABI, as bytes. Their sources are in src/; build.sh rebuilds them.
package guests

import _ "embed"

// Noop has the smallest possible jh_run: no input, no output.
//
//go:embed noop.wasm
var Noop []byte

// Echo returns its input through a mailbox of 64 KiB.
//
//go:embed echo.wasm
var Echo []byte

// Outcomes has an entry for each way an attempt can go: see src/outcomes.c.
//
//go:embed outcomes.wasm
var Outcomes []byte

// Exit calls WASI: jh_run exits with the code in its payload; streams, flood,
// sleep and random do what they say.
//
//go:embed exit.wasm
var Exit []byte

// Init returns how often it was initialised.
//
//go:embed init.wasm
var Init []byte

// InitSpin never gets out of its initialisation.
//
//go:embed init_spin.wasm
var InitSpin []byte

// InitTrap logs a line and traps in its initialisation.
//
//go:embed init_trap.wasm
var InitTrap []byte
