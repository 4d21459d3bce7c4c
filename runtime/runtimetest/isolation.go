package runtimetest

import (
	"context"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// testIsolation: no job sees what another job of the same sandbox left behind,
// however that one ended.
func testIsolation(t *testing.T, s Subject) {
	for _, isolation := range []runtime.Isolation{runtime.IsolateJob, runtime.IsolateFresh} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			p := s.Open(t, runtime.Source{Isolation: isolation})
			if got := p.Info().Isolation; got != isolation {
				t.Errorf("the plugin's isolation is %q", got)
			}
			sandbox := runtime.NewSandbox(p, nil)
			defer func() { _ = sandbox.Close(context.Background()) }()
			for _, before := range []string{"plant", "fail_retry", "trap", "big_output", "plant", "recurse", "grow", "plant"} {
				if !s.can(before) {
					continue
				}
				sandbox.Run(t.Context(), s.Call(before, "8"))
				checkPristine(t, s, sandbox, before)
			}
		})
	}
}

func checkPristine(t *testing.T, s Subject, sandbox *runtime.Sandbox, before string) {
	t.Helper()
	for behaviour, want := range map[string]string{"look": "clean", "count": "1"} {
		if !s.can(behaviour) {
			continue
		}
		got := sandbox.Run(t.Context(), s.Call(behaviour, ""))
		if got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != want {
			t.Errorf("after %s, %s returned %q instead of %q: %+v", before, behaviour, got.Output, want, got.Failure)
		}
	}
}

// testFuel: the same work costs the same, and more than the limit fails.
func testFuel(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{})
	var costs []int64
	for range 2 {
		i := Instance(t, p)
		for range 3 {
			costs = append(costs, i.Run(t.Context(), s.Call("log_flood", "1000")).Outcome.Fuel)
		}
	}
	for _, cost := range costs {
		if cost <= 0 || cost != costs[0] {
			t.Fatalf("the same work cost %v", costs)
		}
	}
	enough := s.Open(t, runtime.Source{Limits: runtime.Limits{Fuel: costs[0]}})
	if got := Instance(t, enough).Run(t.Context(), s.Call("log_flood", "1000")).Outcome; got.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("with just enough fuel: %+v", got.Failure)
	}
	limited := s.Open(t, runtime.Source{Limits: runtime.Limits{Fuel: 100_000}})
	got := Instance(t, limited).Run(t.Context(), s.Call("spin", ""))
	f := got.Outcome.Failure
	if f == nil || f.Code != jobhost.FailFuel || f.Category != jobhost.CategoryResource || got.Replace != runtime.ReplacedFuel {
		t.Errorf("out of fuel: %+v, replaced for %q", f, got.Replace)
	}
	if used := got.Outcome.Fuel; used < 100_000 || used > 110_000 {
		t.Errorf("a guest with 100,000 units used %d", used)
	}
}
