package wasm

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestWrongResultsRefused: where one result is wrong nothing is run, and people learn
// what to do.
func TestWrongResultsRefused(t *testing.T) {
	t.Parallel()
	checks := selfChecks()
	last := &checks[len(checks)-1]
	last.want++
	err := (&Engine{}).prove(t.Context(), checks)
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), runtime.GOARCH+" gives wrong results: "+last.name) || !strings.Contains(jobhost.HintOf(err), "on amd64") {
		t.Errorf("%v, hint %q", err, jobhost.HintOf(err))
	}
}

// TestSelfChecks shows that each module is right as it is on the interpreter, and
// rewritten on the compiler; and that the compiler for this machine gets those
// wrong that are there for it.
func TestSelfChecks(t *testing.T) {
	t.Parallel()
	wrong := map[string][]bool{
		"amd64": {true, true, false, false, false},
		"arm64": {false, false, true, true, true},
	}[runtime.GOARCH]
	for i, c := range selfChecks() {
		for _, form := range []rig.Form{rig.Interpreted, rig.Compiled, rig.Rewritten} {
			r := rig.NewRuntime(t.Context(), form)
			instance, err := rig.Instantiate(t.Context(), r, form, c.wasm, "")
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			got, err := instance.ExportedFunction("f").Call(t.Context(), c.arg)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			right := slices.Equal(got, []uint64{c.want})
			if want := form != rig.Compiled || wrong == nil || !wrong[i]; right != want {
				t.Errorf("%s, %s: %d instead of %d", c.name, form, got, c.want)
			}
			_ = r.Close(t.Context())
		}
		t.Logf("%s: %d bytes", c.name, len(c.wasm))
	}
}
