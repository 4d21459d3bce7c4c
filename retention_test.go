package jobhost_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	r := jobhost.DefaultRetention()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for state, want := range map[jobhost.State]time.Duration{
		jobhost.Succeeded: 24 * time.Hour, jobhost.Cancelled: 24 * time.Hour, jobhost.Dead: 720 * time.Hour, jobhost.Running: 0,
	} {
		if got := r.For(state); got != want {
			t.Errorf("%v is kept for %v, want %v", state, got, want)
		}
	}
	r.Cancelled, r.MaxEntries = 0, 9
	if got, want := r.String(), "succeeded 1d, cancelled for ever, dead 30d, at most 9 dead"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWorkflowRetention(t *testing.T) {
	t.Parallel()
	r := jobhost.DefaultWorkflowRetention()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for status, want := range map[jobhost.WorkflowStatus]time.Duration{
		jobhost.WorkflowCompleted: 24 * time.Hour, jobhost.WorkflowCancelled: 24 * time.Hour,
		jobhost.WorkflowFailed: 720 * time.Hour, jobhost.WorkflowRunning: 0,
	} {
		if got := r.For(status); got != want {
			t.Errorf("%v is kept for %v, want %v", status, got, want)
		}
	}
	r = jobhost.WorkflowRetention{Completed: -1, Failed: jobhost.MaxRetention + 1, Cancelled: -time.Hour}
	if got := fields(t, r.Check()); !slices.Equal(got, []string{"completed", "failed", "cancelled"}) {
		t.Errorf("faults in %v", got)
	}
}

func TestRetentionCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field string
		r     jobhost.Retention
	}{
		{"succeeded", jobhost.Retention{Succeeded: -1}},
		{"cancelled", jobhost.Retention{Cancelled: jobhost.MaxRetention + 1}},
		{"dead", jobhost.Retention{Dead: -time.Hour}},
		{"max_entries", jobhost.Retention{MaxEntries: -1}},
	} {
		t.Run(tc.field, func(t *testing.T) {
			t.Parallel()
			if got := fields(t, tc.r.Check()); len(got) != 1 || got[0] != tc.field {
				t.Errorf("faults in %v", got)
			}
		})
	}
}
