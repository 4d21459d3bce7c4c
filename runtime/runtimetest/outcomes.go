package runtimetest

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// outcomeCase is one way an attempt can go.
type outcomeCase struct {
	name, entry, input string

	kind   jobhost.OutcomeKind
	output string        // with success
	snooze time.Duration // with a snooze
	// With failure; text must be in the message.
	code      string
	category  jobhost.Category
	text      string
	retryable bool
	stack     string // a frame that must be in the guest's stack
	replace   runtime.Reason
}

func outcomeCases() []outcomeCase {
	const (
		good, bad, later = jobhost.OutcomeSucceeded, jobhost.OutcomeFailed, jobhost.OutcomeSnoozed
		system, unknown  = jobhost.CategorySystem, jobhost.CategoryUnknown
	)
	detailed := `{"code":"quota","category":"resource","severity":"warning","message":"none left","retryable":false}`
	return []outcomeCase{
		{name: "default entry", kind: good, output: "ok"},
		{name: "echo", entry: "echo", input: "hello", kind: good, output: "hello"},
		{name: "echo nothing", entry: "echo", kind: good},
		{name: "echo a full mailbox", entry: "echo", input: strings.Repeat("x", 64<<10), kind: good, output: strings.Repeat("x", 64<<10)},
		{name: "empty", entry: "empty", input: "x", kind: good},
		{name: "zero length", entry: "zero_length", kind: good},
		{name: "pulled input", entry: "pull", input: "pulled", kind: good, output: "pulled"},
		{name: "pulled nothing", entry: "pull", kind: good},
		{name: "output in pieces", entry: "pieces", kind: good, output: "one,two,three"},

		{name: "retryable", entry: "fail_retry", input: "try again", kind: bad, code: "failed", category: unknown, text: "try again", retryable: true},
		{name: "permanent", entry: "fail_permanent", input: "no use", kind: bad, code: "failed", category: unknown, text: "no use"},
		{name: "detailed", entry: "fail_retry", input: detailed, kind: bad, code: "quota", category: jobhost.CategoryResource, text: "none left"},
		{name: "unknown kind", entry: "fail_kind", input: "odd", kind: bad, code: "failed", category: unknown, text: "odd", retryable: true},
		{name: "snooze", entry: "snooze", input: "90s", kind: later, snooze: 90 * time.Second},
		{name: "snooze in JSON", entry: "snooze", input: `{"after_ms":1500}`, kind: later, snooze: 1500 * time.Millisecond},
		{name: "snooze until never", entry: "snooze", input: "soon", kind: bad, code: "bad_snooze", category: unknown, text: "soon", retryable: true},
		{name: "fail, then trap", entry: "fail_trap", input: "no use", kind: bad, code: "failed", category: unknown, text: "no use", replace: runtime.ReplacedTrap},

		{name: "unreachable", entry: "trap", kind: bad, code: "trap", category: system, text: "unreachable", retryable: true, replace: runtime.ReplacedTrap},
		{name: "division by zero", entry: "div0", kind: bad, code: "trap", category: system, text: "integer divide by zero", retryable: true, stack: "div0(i32) i64", replace: runtime.ReplacedTrap},
		{name: "out of bounds", entry: "oob", kind: bad, code: "trap", category: system, text: "out of bounds memory access", retryable: true, replace: runtime.ReplacedTrap},
		{name: "endless recursion", entry: "recurse", kind: bad, code: "stack_overflow", category: jobhost.CategoryResource, text: "stack overflow", retryable: true, replace: runtime.ReplacedStack},
		{name: "call of nothing", entry: "null_call", kind: bad, code: "trap", category: system, text: "invalid table access", retryable: true, replace: runtime.ReplacedTrap},
		{name: "bad pointer", entry: "bad_pointer", input: "1", kind: bad, code: "trap", category: system, text: "jobhost1.emit was given 2 bytes at 4294967295, outside", retryable: true, replace: runtime.ReplacedTrap},
		{name: "bad result", entry: "bad_result", kind: bad, code: "bad_result", category: system, text: "32 bytes at 4294967280, outside", retryable: true, replace: runtime.ReplacedBadResult},
		{name: "no mailbox for the input", entry: "echo", input: strings.Repeat("x", 64<<10+1), kind: bad, code: "bad_result", category: system, text: "jh_buf(65537) returned 0", retryable: true, replace: runtime.ReplacedBadResult},
		{name: "no such entry", entry: "nope\x1b", kind: bad, code: "no_entry", category: jobhost.CategoryValidation, text: `no entry nope\x1b; it exports bad_pointer, bad_result`},
	}
}

func testOutcomes(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{})
	for _, c := range outcomeCases() {
		if !s.can(c.entry) || !s.can(c.name) {
			continue
		}
		if !s.can("stacks") {
			c.stack = ""
		}
		if c.code == jobhost.FailWorker && s.FailCode != "" {
			c.code = s.FailCode
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := s.Call(c.entry, c.input)
			got := Instance(t, p).Run(t.Context(), at)
			o := got.Outcome
			if o.Kind != c.kind || got.Replace != c.replace {
				t.Fatalf("outcome %v, replaced for %q, want %v, %q; failure: %+v", o.Kind, got.Replace, c.kind, c.replace, o.Failure)
			}
			if string(o.Output) != c.output || o.Snooze != c.snooze {
				t.Errorf("output %.80q, snooze %v", o.Output, o.Snooze)
			}
			if (o.Failure != nil) != (c.kind == jobhost.OutcomeFailed) {
				t.Fatalf("failure %+v", o.Failure)
			}
			if o.Failure != nil {
				checkFailure(t, c, o.Failure)
			}
		})
	}
}

func checkFailure(t *testing.T, c outcomeCase, f *jobhost.Failure) {
	t.Helper()
	if f.Code != c.code || f.Category != c.category || f.Retryable != c.retryable {
		t.Errorf("failure %s, %s, retryable %t, want %s, %s, %t", f.Code, f.Category, f.Retryable, c.code, c.category, c.retryable)
	}
	if !strings.Contains(f.Message, c.text) {
		t.Errorf("message %q doesn't say %q", f.Message, c.text)
	}
	if !strings.Contains(f.Stack, c.stack) {
		t.Errorf("stack %q has no frame %q", f.Stack, c.stack)
	}
	if f.Task != 2 || f.Attempt != 4 {
		t.Errorf("failure of task %d, attempt %d", f.Task, f.Attempt)
	}
	// Clients see these: they must reveal nothing about the host.
	for _, s := range []string{f.Message, f.Stack} {
		if strings.Contains(s, "/") || strings.Contains(s, "goroutine") || strings.Contains(s, "wazero") || strings.Contains(s, ".go") {
			t.Errorf("the host shows in %q", s)
		}
	}
}
