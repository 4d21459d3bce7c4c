package jobhost

import (
	"strings"
	"testing"
	"time"
)

func TestStepRetryKeepsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	zero := 0.0
	base := DefaultRetry()
	got := (&StepRetry{MaxAttempts: 7, Initial: Duration(10 * time.Minute), Jitter: &zero}).Over(base)
	want := base
	want.MaxAttempts, want.Initial, want.Max, want.Jitter = 7, 10*time.Minute, 10*time.Minute, 0
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (*StepRetry)(nil).Over(base); got != base {
		t.Errorf("nothing said: got %v", got)
	}
}

func TestStepBreakerHasDefaults(t *testing.T) {
	t.Parallel()
	got := (&StepBreaker{Failures: 2}).Policy("w", "s")
	want := DefaultBreaker("w/s")
	want.Failures = 2
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNamesOfWorkflowsAndSteps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		workflow, step bool
	}{
		{"a", true, true},
		{"load-data_2", true, true},
		{"Upper", false, true},
		{"a.b", true, false},
		{"", false, false},
		{"-a", false, false},
		{"1a", true, true},
		{"é", false, false},
		{"a b", false, false},
		{strings.Repeat("a", 64), false, false},
	}
	for _, tt := range tests {
		if CheckWorkflow(tt.name) == nil != tt.workflow || CheckStep(tt.name) == nil != tt.step {
			t.Errorf("%q: got %v and %v", tt.name, CheckWorkflow(tt.name), CheckStep(tt.name))
		}
	}
}
