package wasm_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestStackHasTheAuthorsIndices: functions without names are those of the
// module as it stands in the file, not of what it becomes.
func TestStackHasTheAuthorsIndices(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), attack(1, false, call(1), call(2), "\x00"), runtime.Limits{})
	got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", ""))
	if got.Outcome.Failure == nil {
		t.Fatalf("%+v", got)
	}
	var frames []string
	for line := range strings.Lines(got.Outcome.Failure.Stack) {
		frames = append(frames, strings.TrimSpace(line))
	}
	if want := "$2() $1() $0() $3(i32) i64"; strings.Join(frames, " ") != want {
		t.Errorf("the stack is %q, not %q", frames, want)
	}
}
