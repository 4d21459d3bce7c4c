package wasm_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// named appends a name section to a module.
func named(wasm []byte, parts ...string) []byte {
	content := "\x04name" + strings.Join(parts, "")
	return append(wasm, "\x00"+uleb(len(content))+content...)
}

func namePart(id byte, content string) string { return string(id) + uleb(len(content)) + content }
func sized(s string) string                   { return uleb(len(s)) + s }

// TestNamesTakeNoMemory: wazero puts a name together for each function, of
// those of the module and of the function.
func TestNamesTakeNoMemory(t *testing.T) {
	const functions, long = 5000, 1 << 20
	bodies := make([]string, functions)
	for f := range bodies {
		bodies[f] = call(f + 1)
	}
	bodies[functions-1] = "\x00" // traps
	wasm := attack(1, false, bodies...)
	for name, names := range map[string]string{
		"of the module":  namePart(0, sized(strings.Repeat("m", long))),
		"of a function":  namePart(1, "\x01\x00"+sized(strings.Repeat("f", long))),
		"of all of them": namePart(0, sized(strings.Repeat("m", long))) + namePart(1, "\x01\x00"+sized(strings.Repeat("é", long))),
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, newEngine(t), named(wasm, names), runtime.Limits{})
			i := runtimetest.Instance(t, p)
			var got runtime.Result
			peak := peakOf(t, func() { got = i.Run(t.Context(), runtimetest.Attempt("", "")) })
			if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTrap {
				t.Fatalf("%+v", got.Outcome)
			}
			if most := int64(64<<20) * raceFactor; peak > most {
				t.Errorf("a trap took %d MiB", peak>>20)
			}
		})
	}
}

// TestStackHasNames: functions are called what their author called them, as far
// as the name is short enough to be read.
func TestStackHasNames(t *testing.T) {
	t.Parallel()
	wasm := named(attack(1, false, call(1), "\x00"),
		namePart(0, sized("unseen")), namePart(1, "\x02\x00"+sized("outer")+"\x01"+sized(strings.Repeat("é", 300))))
	got := runtimetest.Instance(t, load(t, newEngine(t), wasm, runtime.Limits{})).Run(t.Context(), runtimetest.Attempt("", ""))
	want := strings.Repeat("é", 100) + "()\nouter()\n$2(i32) i64"
	if f := got.Outcome.Failure; f == nil || f.Stack != want {
		t.Errorf("%+v", f)
	}
}
