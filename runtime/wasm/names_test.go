package wasm_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestNamesTakeNoMemory: wazero puts a name together for each function, of
// those of the module and of the function.
func TestNamesTakeNoMemory(t *testing.T) {
	for name, wasm := range runtimetest.NameBombs() {
		t.Run(name, func(t *testing.T) {
			i := runtimetest.Instance(t, load(t, newEngine(t), wasm, runtime.Limits{}))
			var got runtime.Result
			peak := peakOf(t, func() { got = i.Run(t.Context(), runtimetest.Attempt("", "")) })
			if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTrap {
				t.Fatalf("%+v", got.Outcome)
			}
			if most := int64(runtimetest.BombBytes) * raceFactor; peak > most {
				t.Errorf("a trap took %d MiB", peak>>20)
			}
		})
	}
}

// TestStackHasNames: functions are called what their author called them, as far
// as the name is short enough to be read.
func TestStackHasNames(t *testing.T) {
	t.Parallel()
	wasm := runtimetest.WithNames(attack(1, false, call(1), "\x00"),
		runtimetest.NamePart(0, sized("unseen")), runtimetest.NamePart(1, "\x02\x00"+sized("outer")+"\x01"+sized(strings.Repeat("é", 300))))
	got := runtimetest.Instance(t, load(t, newEngine(t), wasm, runtime.Limits{})).Run(t.Context(), runtimetest.Attempt("", ""))
	want := strings.Repeat("é", 100) + "()\nouter()\n$2(i32) i64"
	if f := got.Outcome.Failure; f == nil || f.Stack != want {
		t.Errorf("%+v", f)
	}
}
