package wasm_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestGrownIsReplaced: memory that has grown too far can't be shrunk.
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

// TestMemoryIsThatOfAFreshOne: how much memory a job can use doesn't depend on
// what earlier jobs used.
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

// TestMemoryOfACrampedModule: this also holds for the maximum that a module itself declares.
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

// TestRefusalIsOfOneJob: a refusal of memory is reported only for the job concerned.
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
