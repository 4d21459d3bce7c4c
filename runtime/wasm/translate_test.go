package wasm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
)

// TestCompileMemory: what a module may take is compared with the form that the
// compiler gets, and a refusal names the setting.
func TestCompileMemory(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	p, err := engine.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Outcomes})
	if err != nil {
		t.Fatal(err)
	}
	takes := p.Info().CompileMemory
	if need := p.Info().CompileNeed; takes <= 0 || need != 256<<20 {
		t.Fatalf("it takes %d, which needs %d", takes, need)
	}
	for _, c := range []struct {
		limit   int64
		refused bool
	}{{takes, false}, {takes - 1, true}, {takes / 100, true}} {
		_, err := engine.Load(t.Context(), runtime.Source{
			Worker: "w", Path: "test.wasm", Bytes: guests.Outcomes, Limits: runtime.Limits{CompileBytes: c.limit},
		})
		if !c.refused {
			if err != nil {
				t.Errorf("with just what it takes: %v", err)
			}
			continue
		}
		e, _ := errors.AsType[*jobhost.Error](err)
		if e == nil || e.Code != jobhost.CodeInvalid || e.Field != "compile_memory" || !strings.Contains(e.Hint, `set compile_memory = "256MiB"`) {
			t.Errorf("with %d of %d: %+v", c.limit, takes, err)
		}
	}
}
