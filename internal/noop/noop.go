// Package noop holds the smallest possible worker, which measures the host
// rather than a guest: what `jobhost bench` runs.
package noop

import _ "embed"

// Module is a WebAssembly module whose jh_run takes no input and gives no
// output. It is built from src/noop.c by build.sh in internal/testing/guests.
//
//go:embed noop.wasm
var Module []byte
