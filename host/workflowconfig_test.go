package host

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

func TestWorkflowsCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		workflows Workflows
		want      string // the lines of the error, by commas; empty = none
	}{
		{"nothing", Workflows{}, ""},
		{"fine", Workflows{MaxOpen: 1, MaxNesting: 32, Definitions: []jobhost.Workflow{{Name: "a"}, {Name: "b"}}}, ""},
		{
			"bounds",
			Workflows{MaxOpen: -1, MaxNesting: 33, Retention: &jobhost.WorkflowRetention{Failed: -1}},
			"max_open -1,max_nesting 33,retention: failed",
		},
		{"twice", Workflows{Definitions: []jobhost.Workflow{{Name: "a"}, {Name: "a"}}}, "workflow a is there twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := tc.workflows.Check(); err != nil {
				got = err.Error()
			}
			for i, want := range strings.Split(tc.want, ",") {
				lines := strings.Split(got, "\n")
				if i >= len(lines) || !strings.Contains(lines[i], want) || tc.want == "" && got != "" {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			}
		})
	}
}

func TestWorkflowsDefaults(t *testing.T) {
	t.Parallel()
	var w Workflows
	w.setDefaults()
	if w.MaxOpen != 100_000 || w.MaxNesting != 16 || *w.Retention != jobhost.DefaultWorkflowRetention() {
		t.Errorf("got %+v", w)
	}
	forever := Workflows{Retention: &jobhost.WorkflowRetention{}}
	if forever.setDefaults(); *forever.Retention != (jobhost.WorkflowRetention{}) {
		t.Errorf("kept for %+v, not for ever", forever.Retention)
	}
}
