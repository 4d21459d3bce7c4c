package preflight_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// TestNeed: what a refusal says to set is enough, and nothing that is much less is.
func TestNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, because string
		module        []byte
	}{
		{"memory", "about 1252MiB of memory, more than its compile_memory of 1GiB; mostly because of instructions that become much code, in function 0", one(0, times(get+get+"\x11\x00\x00", 95_000))},
		{"time", "longer than usual for its size", one(0, times(block+end, 20_000))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := check(c.module)
			if err == nil || !strings.Contains(err.Error(), c.because) {
				t.Fatalf("%v", err)
			}
			e, _ := errors.AsType[*jobhost.Error](err)
			if e.Field != "compile_memory" || !strings.Contains(e.Hint, `set compile_memory = "`) {
				t.Errorf("field %s, hint %s", e.Field, e.Hint)
			}
			m, err := preflight.Read(c.module, preflight.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			estimate, err := preflight.Code(m, preflight.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			need := estimate.Need(m.CodeBytes())
			if err := estimate.Within(preflight.Limits{CompileBytes: need}, m.CodeBytes()); err != nil {
				t.Errorf("with %d MiB: %v", need>>20, err)
			}
			if estimate.Within(preflight.Limits{CompileBytes: need - 256<<20}, m.CodeBytes()) == nil {
				t.Errorf("%d MiB are more than it needs", need>>20)
			}
		})
	}
}

// TestNestingOfGo: a function with as many basic blocks as that of a popular package is let pass.
func TestNestingOfGo(t *testing.T) {
	t.Parallel()
	if err := check(one(0, times(block, 6_000), times(end, 6_000))); err != nil {
		t.Error(err)
	}
}
