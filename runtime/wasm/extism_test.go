package wasm_test

import (
	"slices"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestExtismJS: a plugin of the kit for JavaScript needs no entry, since what the kit adds is none.
func TestExtismJS(t *testing.T) {
	t.Parallel()
	p, err := newEngine(t).Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.ExtismJS})
	if err != nil {
		t.Fatal(err)
	}
	if info := p.Info(); info.ABI != runtime.ABIExtism || info.Entry != "reverse" || !slices.Equal(info.Entries, []string{"reverse"}) {
		t.Errorf("%+v", info)
	}
	if got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "hello")).Outcome; string(got.Output) != "hello" {
		t.Errorf("%q, %+v", got.Output, got.Failure)
	}
}
