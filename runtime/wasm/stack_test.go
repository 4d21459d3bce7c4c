package wasm_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// wasi begins an import section of one function of WASI.
const wasi = "\x02\x01\x16wasi_snapshot_preview1"

// What wazero returns for an export that is a function of the host has no stack
// to be replaced, so a module may not hand one back as its own.
func TestFunctionOfTheHostAsMailbox(t *testing.T) {
	t.Parallel()
	_, err := newEngine(t).Load(t.Context(), runtime.Source{Worker: "test", Bytes: module(
		"\x01\x02\x60\x01\x7f\x01\x7e\x60\x01\x7f\x01\x7f", wasi+"\x08fd_close\x00\x01", function, memory1,
		"\x07\x03"+exportMemory+"\x06jh_buf\x00\x00\x06jh_run\x00\x01", code,
	)})
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "exports jh_buf as its import") {
		t.Errorf("%v", err)
	}
}

// TestOnlyFunctionsAreCalled: a memory may have the name of what initialises.
func TestOnlyFunctionsAreCalled(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), module(types, function, memory1, "\x07\x03"+exportMemory+exportRun+"\x0b_initialize\x02\x00", code), runtime.Limits{})
	if got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "")); got.Outcome.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("%+v", got.Outcome.Failure)
	}
}

// A function that the plugin imports is none of its entries: the host's own can't be called as a guest's.
func TestFunctionOfTheHostAsEntry(t *testing.T) {
	t.Parallel()
	_, err := newEngine(t).Load(t.Context(), runtime.Source{Worker: "test", ABI: runtime.ABIExtism, Bytes: module(
		"\x01\x01\x60\x00\x01\x7f", wasi+"\x0bsched_yield\x00\x00", "\x07\x01\x03run\x00\x00",
	)})
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "has no entry") {
		t.Errorf("%v", err)
	}
}
