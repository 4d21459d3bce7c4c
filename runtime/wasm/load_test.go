package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// module builds a module from sections; each is its number and its content.
var module = runtimetest.Module

// Sections of small modules. Types: 0 is (i32) → i64, 1 is () → ().
const (
	types    = "\x01\x02\x60\x01\x7f\x01\x7e\x60\x00\x00"
	function = "\x03\x01\x00"     // one, of type 0
	memory1  = "\x05\x01\x00\x01" // one page
	code     = "\x0a\x01\x04\x00\x42\x00\x0b"

	exportMemory = "\x06memory\x02\x00"
	exportRun    = "\x06jh_run\x00\x00"
)

func imported(module, name, kind string) string {
	return "\x02\x01" + string(rune(len(module))) + module + string(rune(len(name))) + name + kind
}

type loadCase struct {
	name, entry   string
	module        []byte
	message, hint string // parts of what the error says
	limits        runtime.Limits
	isolation     runtime.Isolation
	abi           string
}

func loadCases() []loadCase {
	return []loadCase{
		{name: "empty", message: "test.wasm is empty"},
		{name: "ELF", module: []byte("\x7fELF\x02\x01"), message: "native Linux", hint: "compile for wasm32"},
		{name: "gzip", module: []byte("\x1f\x8b\x08"), message: "gzip", hint: "gunzip"},
		{name: "Go source", module: []byte("package main\n\nfunc main() {}\n"), message: "is text", hint: "not its source"},
		{name: "wat", module: []byte("  (module (memory 1))"), message: "WebAssembly text", hint: "wat2wasm"},
		{name: "html", module: []byte("<!DOCTYPE html>"), message: "HTML"},
		{name: "LFS pointer", module: []byte("version https://git-lfs.github.com/spec/v1\n"), message: "LFS", hint: "git lfs pull"},
		{name: "component", module: []byte("\x00asm\x0d\x00\x01\x00\x00"), message: "component", hint: "core module"},
		{name: "noise", module: []byte("\x01\x02\x03\x04"), message: "begins with 01 02 03 04"},
		{name: "seven bytes", module: []byte("\x00asm\x01\x00\x00"), message: "cut off after 7 bytes"},
		{name: "version 2", module: []byte("\x00asm\x02\x00\x00\x00"), message: "unknown version 02 00 00 00"},
		{name: "too large", module: make([]byte, 32<<20+1), message: "33554433 bytes", hint: "strip"},
		{name: "cut off", module: guests.Outcomes[:1000], message: "should follow, but there are only"},
		{name: "no sections", module: module(), message: "no plugin of any kind", hint: "docs/wasi.md"},
		{name: "endless types", module: module("\x01\xff\xff\xff\xff\x0f"), message: "4294967295 types are more than"},
		{name: "bad type", module: module("\x01\x01\x60\x01\x00\x00", memory1), message: "not a valid WebAssembly module"},
		{name: "threads", module: module("\x05\x01\x03\x01\x02"), message: "needs threads", hint: "without -pthread"},

		{name: "no entry", module: module(types, memory1, "\x07\x01"+exportMemory), message: "no plugin of any kind: it has no export jh_run", hint: "exports no function"},
		{
			name: "an import as entry", abi: runtime.ABIExtism, entry: "yield",
			module:  module("\x01\x01\x60\x00\x01\x7f", imported("wasi_snapshot_preview1", "sched_yield", "\x00\x00"), memory1, "\x07\x01\x05yield\x00\x00"),
			message: "exports yield as its import () → i32",
		},
		{name: "other entry", module: guests.Outcomes, entry: "vowels", message: "has no export vowels", hint: "bad_pointer, bad_result"},
		{name: "entry of a command", module: guests.Command, entry: "main", message: "has no export main", hint: "it exports _start"},
		{name: "command that keeps", module: guests.Command, isolation: runtime.IsolateInstance, message: "main function can't run twice", hint: "isolation job"},
		{name: "unknown ABI", module: guests.Echo, abi: "docker", message: "unknown ABI docker", hint: "jobhost, wasi, extism or auto"},
		{name: "wrong type", module: module(types, "\x03\x01\x01", memory1, "\x07\x02"+exportMemory+exportRun, "\x0a\x01\x02\x00\x0b"), message: "exports jh_run as () → () instead of (i32) → i64"},
		{name: "wrong type of an entry", entry: "work", module: module(types, "\x03\x02\x00\x01", memory1, "\x07\x03"+exportMemory+exportRun+"\x04work\x00\x01", "\x0a\x02\x04\x00\x42\x00\x0b\x02\x00\x0b"), message: "exports work as () → ()"},
		{name: "wrong mailbox", module: module(types, function, memory1, "\x07\x03"+exportMemory+exportRun+"\x06jh_buf\x00\x00", code), message: "exports jh_buf as (i32) → i64 instead of (i32) → i32"},
		{name: "no memory", module: module(types, function, "\x07\x01"+exportRun, code), message: "no memory"},
		{name: "memory not exported", module: module(types, function, memory1, "\x07\x01"+exportRun, code), message: "doesn't export its memory"},
		{name: "memory over the limit", module: module(types, function, "\x05\x01\x00\x11", "\x07\x02"+exportMemory+exportRun, code), limits: runtime.Limits{MemoryBytes: 1 << 20}, message: "at least 1.062 MiB of memory, the limit is 1 MiB"},
		{name: "4 GiB", module: module(types, function, "\x05\x01\x00\x80\x80\x04", "\x07\x02"+exportMemory+exportRun, code), limits: runtime.Limits{MemoryBytes: 1 << 40}, message: "needs 4096 MiB of memory at the start"},

		{name: "unknown function", module: module(types, imported("jobhost1", "state", "\x00\x00"), memory1), message: "imports jobhost1.state, which this host doesn't offer", hint: "module jobhost1 has drop, emit, fail,"},
		{name: "unknown module", module: module(types, imported("env", "puts", "\x00\x00"), memory1), message: "imports env.puts, but this host has no module env", hint: "declared but never defined"},
		{name: "preview 2", module: module(types, imported("wasi:cli/x", "get", "\x00\x00"), memory1), message: "is made for WASI preview 2", hint: "wasm32-wasip1"},
		{name: "imported memory", module: module(types, imported("env", "memory", "\x02\x00\x01"), memory1), message: "env.memory, a memory and not a function"},
		{name: "imported global", module: module(types, imported("env", "g", "\x03\x7f\x00"), memory1), message: "env.g, a global and not a function"},
		{name: "plugin of the wrong ABI", abi: "jobhost", module: module(types, imported("extism:host/env", "alloc", "\x00\x00"), memory1), message: "no module extism:host/env", hint: "abi to extism"},
		{name: "WASI of a plugin", abi: "extism", module: module(types, imported("wasi_snapshot_preview1", "fd_open", "\x00\x00"), memory1), message: "imports wasi_snapshot_preview1.fd_open, which this host doesn't offer"},
		{name: "wrong type of a plugin's import", abi: "extism", module: module(types, imported("extism:host/env", "alloc", "\x00\x00"), memory1), message: "imports extism:host/env.alloc as (i32) → i64, the host's is (i64) → i64"},
		{name: "wrong type of an import", module: module(types, imported("jobhost1", "emit", "\x00\x00"), memory1), message: "imports jobhost1.emit as (i32) → i64, the host's is (i32, i32) → i32"},
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, c := range loadCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := e.Load(t.Context(), runtime.Source{Worker: "w", Path: "dir/test.wasm", Bytes: c.module, Entry: c.entry, Limits: c.limits, Isolation: c.isolation, ABI: c.abi})
			if err == nil || p != nil {
				t.Fatalf("loaded: %v", p)
			}
			if jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("code %s of %v", jobhost.CodeOf(err), err)
			}
			if !strings.HasPrefix(err.Error(), "test.wasm ") || !strings.Contains(err.Error(), c.message) {
				t.Errorf("error %q doesn't say %q", err, c.message)
			}
			if hint := jobhost.HintOf(err); !strings.Contains(hint, c.hint) {
				t.Errorf("hint %q doesn't say %q", hint, c.hint)
			}
		})
	}
}

// TestLoadDamaged cuts and flips a good module in every place: each is refused
// or loads, and nothing else happens.
func TestLoadDamaged(t *testing.T) {
	t.Parallel()
	e, err := wasm.New(wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	try := func(module []byte) {
		p, err := e.Load(t.Context(), runtime.Source{Worker: "w", Bytes: module})
		if err == nil {
			err = p.Close(t.Context())
		}
		if err != nil && jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("error %v", err)
		}
	}
	for n := range guests.Echo {
		try(guests.Echo[:n])
		flipped := bytes.Clone(guests.Echo)
		flipped[n] ^= 1 << (n % 8)
		try(flipped)
	}
}

func TestLoadInfo(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p, err := e.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Outcomes, Entry: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	info := p.Info()
	if len(info.SHA256) != 64 || info.Size != len(guests.Outcomes) || info.ABI != "jobhost" || info.Entry != "echo" {
		t.Errorf("%+v", info)
	}
	if len(info.Entries) < 30 || info.Entries[0] != "bad_pointer" || info.MemoryMin == 0 || info.MemoryMax != 0 {
		t.Errorf("%+v", info)
	}
	if got := strings.Join(info.Imports, " "); !strings.HasPrefix(got, "jobhost1.emit jobhost1.fail jobhost1.info") {
		t.Errorf("imports %s", got)
	}
	if got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "hi")).Outcome; string(got.Output) != "hi" {
		t.Errorf("the default entry returned %q", got.Output)
	}
}

func TestLoadTogether(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			p, err := e.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Echo})
			if err != nil {
				t.Error(err)
				return
			}
			if got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "hi")).Outcome; string(got.Output) != "hi" {
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
}

func TestLoadStopped(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Load(ctx, runtime.Source{Worker: "w", Bytes: guests.Echo}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	p := load(t, e, guests.Echo, runtime.Limits{})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_ = e.Close(t.Context())
	if _, err := e.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Echo}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("by a closed engine: %v", err)
	}
}
