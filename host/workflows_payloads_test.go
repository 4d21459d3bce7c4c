package host_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// TestWorkflowsPassLargeOutputs passes an output that is kept outside of the store from step to step: it is there once for
// each that returned it, and goes with the workflow.
func TestWorkflowsPassLargeOutputs(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	step := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: "test", Needs: needs}
	}
	id := startWorkflow(t, s.Host, jobhost.WorkflowStart{
		Definition: &jobhost.Workflow{Name: "w", Steps: []jobhost.Step{step("a"), step("b", "a"), step("c", "a")}, Output: "steps.b.output"},
		Input:      []byte(`"` + strings.Repeat("x", 5000) + `"`),
	})
	got := workflowEnded(t, s.Host, id)
	if got.Status != jobhost.WorkflowCompleted || got.OutputSize != 5002 {
		t.Fatalf("%s, an output of %d bytes: %+v", statuses(&got), got.OutputSize, got.Failure)
	}
	if text := s.result(t, got.Steps[2].Job); len(text) != 5002 {
		t.Errorf("c returned %d bytes", len(text))
	}
	if n := s.objects.Len(); n != 3 {
		t.Errorf("there are %d objects", n)
	}
	if err := s.DeleteWorkflow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.awaitObjects(t, 0)
}
