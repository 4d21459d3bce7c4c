package host_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestWorkflowsBeginSoMuchAtOnce has a start that would be one transaction of millions of rows, by fan-outs, by payloads
// and by workflows of workflows.
func TestWorkflowsBeginSoMuchAtOnce(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	nest := func(name, of string, n int) jobhost.Workflow {
		w := jobhost.Workflow{Name: name}
		for i := range n {
			s := jobhost.Step{Name: fmt.Sprint("s", i), Sleep: jobhost.Duration(time.Hour)}
			if of != "" {
				s.Workflow, s.Sleep, s.OnError = of, 0, jobhost.ContinueWorkflow
			}
			w.Steps = append(w.Steps, s)
		}
		return w
	}
	cfg.Workflows.Definitions = []jobhost.Workflow{nest("one", "", 1), nest("two", "one", 100), nest("three", "two", 100)}
	cfg.Workflows.MaxAtOnce, cfg.Workflows.MaxBytesAtOnce = 1000, 1<<20
	h, _ := run(t, cfg)
	start := func(s jobhost.WorkflowStart) jobhost.WorkflowRun {
		t.Helper()
		id := startWorkflow(t, h, s)
		run, err := h.Workflow(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	failed := func(run *jobhost.WorkflowRun) (n int) {
		for _, s := range run.Steps {
			if s.Failure != nil && s.Failure.Code == jobhost.FailLimit {
				n++
			}
		}
		return n
	}
	fanOut := &jobhost.Workflow{Name: "fans"}
	for i := range 100 {
		fanOut.Steps = append(fanOut.Steps, jobhost.Step{Name: fmt.Sprint("s", i), Worker: "test", FanOut: "input", OnError: jobhost.ContinueWorkflow})
	}
	list := []byte("[0")
	for range 99 {
		list = append(list, ",0"...)
	}
	r := start(jobhost.WorkflowStart{Definition: fanOut, Input: append(list, ']')})
	if n := failed(&r); n != 90 {
		t.Errorf("of 100 fan-outs %d failed: %s", n, r.Status)
	}
	// Its jobs may all have run by now.
	if _, err := h.CancelWorkflow(t.Context(), r.ID, ""); err != nil && jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Error(err)
	}
	wide := &jobhost.Workflow{Name: "wide"}
	for i := range 1000 {
		wide.Steps = append(wide.Steps, jobhost.Step{Name: fmt.Sprint("s", i), Worker: "test", OnError: jobhost.ContinueWorkflow})
	}
	r = start(jobhost.WorkflowStart{Definition: wide, Input: make([]byte, 16<<10)})
	if n := failed(&r); n != 1000-64 {
		t.Errorf("of 1000 jobs with 16 KiB %d failed: %s", n, r.Status)
	}
	if r = start(jobhost.WorkflowStart{Workflow: "three"}); failed(&r) < 50 {
		t.Errorf("workflows of workflows: %s", r.Status)
	}
}
