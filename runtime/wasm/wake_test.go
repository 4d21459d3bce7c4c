package wasm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestGoRandom: what the SDK for Go says of random numbers is so. Its guest
// answers with four numbers: Job.Rand, math/rand/v2, how often OnWake's function
// ran, and crypto/rand.
func TestGoRandom(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building and compiling a Go guest takes seconds")
	}
	e := newEngine(t)
	module := goWorker(t)
	for _, c := range []struct {
		isolation runtime.Isolation
		repeats   bool // math/rand/v2
		woken     [2]string
	}{
		{runtime.IsolateJob, true, [2]string{"1", "1"}},
		{runtime.IsolateInstance, false, [2]string{"1", "1"}},
		{runtime.IsolateFresh, false, [2]string{"0", "0"}},
	} {
		p, err := e.Load(t.Context(), runtime.Source{Worker: "luck", Bytes: module, Isolation: c.isolation})
		if err != nil {
			t.Fatal(err)
		}
		sandbox := runtime.NewSandbox(p, nil)
		t.Cleanup(func() { _ = sandbox.Close(context.Background()) })
		var draws [2][]string
		for n := range draws {
			got := sandbox.Run(t.Context(), runtimetest.Attempt("luck", ""))
			if draws[n] = strings.Fields(string(got.Output)); got.Kind != jobhost.OutcomeSucceeded || len(draws[n]) != 4 {
				t.Fatalf("%s: %q, %+v", c.isolation, got.Output, got.Failure)
			}
			if draws[n][2] != c.woken[n] {
				t.Errorf("%s: in job %d it had been woken %s times, not %s", c.isolation, n, draws[n][2], c.woken[n])
			}
		}
		for n, name := range map[int]string{0: "Job.Rand", 3: "crypto/rand"} {
			if draws[0][n] == draws[1][n] {
				t.Errorf("%s: %s drew %s in both jobs", c.isolation, name, draws[0][n])
			}
		}
		if (draws[0][1] == draws[1][1]) != c.repeats {
			t.Errorf("%s: math/rand/v2 drew %s, then %s", c.isolation, draws[0][1], draws[1][1])
		}
	}
}
