package wasm_test

import (
	"context"
	goruntime "runtime"
	"strconv"
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

// TestGrownIsReplaced: memory that was grown too far can't be taken back.
func TestGrownIsReplaced(t *testing.T) {
	t.Parallel()
	p := opener(guests.Outcomes)(t, runtime.Source{})
	i := runtimetest.Instance(t, p)
	if got := i.Run(t.Context(), runtimetest.Attempt("grow", "1")); got.Replace != "" || got.Reset <= 0 {
		t.Errorf("grown by a page: %+v", got)
	}
	if got := i.Run(t.Context(), runtimetest.Attempt("grow", "500")); got.Replace != runtime.ReplacedGrown {
		t.Errorf("grown by 500 pages: %+v", got)
	}
}

// TestMemoryIsThatOfAFreshOne: how much memory a job can have doesn't depend on
// what the jobs before it took.
func TestMemoryIsThatOfAFreshOne(t *testing.T) {
	t.Parallel()
	p := opener(guests.Outcomes)(t, runtime.Source{Limits: runtime.Limits{MemoryBytes: 16 << 20}})
	run := func(s *runtime.Sandbox, pages int) (before int) {
		got := s.Run(t.Context(), runtimetest.Attempt("grow", strconv.Itoa(pages)))
		before, err := strconv.Atoi(string(got.Output))
		if err != nil || before < 0 {
			t.Errorf("growing by %d pages was answered with %q, %v", pages, got.Output, got.Failure)
		}
		return before
	}
	s := runtime.NewSandbox(p, nil)
	defer func() { _ = s.Close(context.Background()) }()
	all := 256 - run(s, 0)
	for _, pages := range []int{1, all, 20, all, all} {
		run(s, pages)
	}
	if got := s.Run(t.Context(), runtimetest.Attempt("grow", strconv.Itoa(all+1))); string(got.Output) != "-1" {
		t.Errorf("growing over the limit was answered with %s", got.Output)
	}
}

// TestMemoryOfACrampedModule: that holds for what a module itself declares, too.
func TestMemoryOfACrampedModule(t *testing.T) {
	t.Parallel()
	// 1 to 20 pages, and an entry that traps unless it can have 10 more.
	growing := module(types, function, "\x05\x01\x01\x01\x14", "\x07\x02"+exportMemory+exportRun,
		"\x0a\x01\x0f\x00\x41\x0a\x40\x00\x41\x7f\x46\x04\x40\x00\x0b\x42\x00\x0b")
	var replaced runtime.Reason
	s := runtime.NewSandbox(opener(growing)(t, runtime.Source{}), func(r *runtime.Result) { replaced = r.Replace })
	defer func() { _ = s.Close(context.Background()) }()
	for n := range 3 {
		if got := s.Run(t.Context(), runtimetest.Attempt("", "")); got.Kind != jobhost.OutcomeSucceeded || replaced != runtime.ReplacedGrown {
			t.Errorf("job %d: %+v, replaced for %q", n, got.Failure, replaced)
		}
	}
}

// TestRefusalIsOfOneJob: that a job was refused memory is told of it alone.
func TestRefusalIsOfOneJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, entry, much string
		module            []byte
		isolation         runtime.Isolation
	}{
		{"job", "grow", "100", guests.Outcomes, runtime.IsolateJob},
		{"instance", "grow", "100", guests.Outcomes, runtime.IsolateInstance},
		{"plugin", "grow", "100", guests.Extism, runtime.IsolateInstance},
		{"kernel of a plugin", "big_output", "4000000", guests.Extism, runtime.IsolateInstance},
	} {
		sawRefusal := false
		sandbox := runtime.NewSandbox(opener(c.module)(t, runtime.Source{
			Isolation: c.isolation, Entry: "echo", Limits: runtime.Limits{MemoryBytes: 2 << 20},
		}), func(r *runtime.Result) { sawRefusal = r.MemoryRefused })
		for n, want := range []bool{false, true, false} {
			entry, input := "echo", ""
			if want {
				entry, input = c.entry, c.much
			}
			sandbox.Run(t.Context(), runtimetest.Attempt(entry, input))
			if sawRefusal != want {
				t.Errorf("%s: job %d was refused memory: %t", c.name, n, sawRefusal)
			}
		}
		if err := sandbox.Close(t.Context()); err != nil {
			t.Error(err)
		}
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

// panicking is a host call that is broken.
type panicking struct{ hostcall.Services }

func TestHostPanic(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Outcomes, runtime.Limits{}))
	at := runtimetest.Attempt("emit", "x")
	at.Services = panicking{} // whose methods are all nil
	got := i.Run(t.Context(), at)
	f := got.Outcome.Failure
	if f == nil || f.Code != jobhost.FailInternal || got.Replace != runtime.ReplacedInternal || !f.Retryable {
		t.Fatalf("%+v", f)
	}
	if text := f.Message + f.Stack; strings.Contains(text, "/") || strings.Contains(text, "goroutine") || strings.Contains(text, "nil pointer") {
		t.Errorf("the host shows in %q", text)
	}
}

// TestNoReentry: an instance that is running refuses a second run.
func TestNoReentry(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Outcomes, runtime.Limits{}))
	at := runtimetest.Attempt("emit", "x")
	var inner runtime.Result
	at.Services = &runtimetest.Services{Emitted: func(string) {
		inner = i.Run(context.Background(), runtimetest.Attempt("", ""))
	}}
	if got := i.Run(t.Context(), at); got.Outcome.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
	if f := inner.Outcome.Failure; f == nil || f.Code != jobhost.FailInternal || inner.Replace != "" {
		t.Errorf("a run within a run: %+v", inner)
	}
}
