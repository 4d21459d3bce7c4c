package wasm_test

import (
	"context"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestCanary plants marks wherever a module can keep something, and looks for
// them in the next job of the same sandbox.
func TestCanary(t *testing.T) {
	t.Parallel()
	const everything = "3f"
	for _, c := range []struct {
		name      string
		guest     []byte
		isolation runtime.Isolation
		before    string // the first look
		after     string // after plant
		replaced  runtime.Reason
	}{
		{"job", guests.Canary, runtime.IsolateJob, "00", "00", ""},
		{"fresh", guests.Canary, runtime.IsolateFresh, "00", "00", runtime.ReplacedFresh},
		// A job's descriptors never outlive it.
		{"instance", guests.Canary, runtime.IsolateInstance, "00", "1f", ""},
		{"tables, job", guests.CanaryTable, runtime.IsolateJob, "clean", "clean", runtime.ReplacedTables},
		{"tables, fresh", guests.CanaryTable, runtime.IsolateFresh, "clean", "clean", runtime.ReplacedFresh},
		{"tables, instance", guests.CanaryTable, runtime.IsolateInstance, "clean", "found", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := opener(c.guest)(t, runtime.Source{Isolation: c.isolation})
			var replaced runtime.Reason
			sandbox := runtime.NewSandbox(p, func(r *runtime.Result) { replaced = r.Replace })
			defer func() { _ = sandbox.Close(context.Background()) }()
			for n, want := range []string{c.before, "", c.after, "", c.after} {
				entry := "look"
				if want == "" {
					entry = "plant"
				}
				got := sandbox.Run(t.Context(), runtimetest.Attempt(entry, ""))
				if got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != want {
					t.Errorf("job %d, %s: %q instead of %q (all marks are %s), %+v", n, entry, got.Output, want, everything, got.Failure)
				}
				if replaced != c.replaced {
					t.Errorf("job %d: replaced for %q instead of %q", n, replaced, c.replaced)
				}
			}
		})
	}
}

// TestIdleHoldsNothing: an instance that waits for its next job keeps nothing of
// the last one alive, such as a large payload.
func TestIdleHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, entry string
		isolation   runtime.Isolation
	}{
		{"reset", "echo", runtime.IsolateJob},
		{"trapped", "trap", runtime.IsolateJob},
		{"kept", "echo", runtime.IsolateInstance},
	} {
		i := runtimetest.Instance(t, opener(guests.Outcomes)(t, runtime.Source{Isolation: c.isolation}))
		gone := make(chan struct{})
		func() {
			payload := &[1 << 20]byte{}
			goruntime.AddCleanup(payload, func(struct{}) { close(gone) }, struct{}{})
			at := runtimetest.Attempt(c.entry, "")
			at.Input = payload[:10]
			i.Run(t.Context(), at)
		}()
		collected := func() bool {
			goruntime.GC()
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}
		for n := 0; !collected(); n++ {
			if n == 100 {
				t.Errorf("%s: the payload is still there", c.name)
				break
			}
		}
		goruntime.KeepAlive(i)
	}
}

// TestAllocations: a run in a pristine sandbox, under a deadline and a context,
// allocates nothing but the copy of its output.
func TestAllocations(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name   string
		module []byte
		input  string
		want   float64
	}{
		{"noop", guests.Noop, "", 0},
		{"echo", guests.Echo, strings.Repeat("x", 64), 1},
	} {
		resets := 0
		sandbox := runtime.NewSandbox(load(t, newEngine(t), tt.module, runtime.Limits{}), func(r *runtime.Result) {
			if r.Reset > 0 {
				resets++
			}
		})
		input := []byte(tt.input)
		at := &hostcall.Attempt{}
		allocs := testing.AllocsPerRun(100, func() {
			at.Reset()
			at.Input = input
			at.Limits.OutputBytes = 100
			at.Deadline = time.Now().Add(time.Minute)
			if got := sandbox.Run(ctx, at); got.Kind != jobhost.OutcomeSucceeded {
				t.Fatalf("%+v", got)
			}
		})
		if allocs > tt.want || resets == 0 {
			t.Errorf("%s: %v allocations, want %v; %d resets", tt.name, allocs, tt.want, resets)
		}
		if err := sandbox.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}
