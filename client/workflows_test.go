package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host/hosttest"
)

// TestStartWorkflowWait: a start that waits returns the workflow with its steps, and
// when its time is over the workflow as it is.
func TestStartWorkflowWait(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	run, err := c.StartWorkflowWait(t.Context(), jobhost.WorkflowStart{Workflow: "chain", Input: []byte(`"x"`)})
	if err != nil || run.Status != jobhost.WorkflowCompleted || string(run.Output) != `"x"` || len(run.Steps) != 2 {
		t.Errorf("got %+v, %v", run, err)
	}
	late := errors.New("waited long enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
	defer cancel()
	run, err = c.StartWorkflowWait(ctx, jobhost.WorkflowStart{ID: "wf-a", Workflow: "approval"})
	if !errors.Is(err, late) || run.Status != jobhost.WorkflowRunning {
		t.Errorf("got %+v, %v", run, err)
	}
}

// TestWorkflowIDs: what can't be part of a path isn't sent.
func TestWorkflowIDs(t *testing.T) {
	t.Parallel()
	c := client.New("http://127.0.0.1:1", token)
	for _, id := range []string{"", "order", "wf-", "wf-../x", "wf-a/trace", "wf-a?b"} {
		_, err := c.Workflow(t.Context(), id)
		wantCode(t, err, jobhost.CodeInvalid, "is not the id of a workflow")
	}
	err := c.SignalWorkflow(t.Context(), "wf-a", jobhost.WorkflowSignal{Name: "../x"})
	wantCode(t, err, jobhost.CodeInvalid, "step name")
	_, err = c.Definition(t.Context(), "../x")
	wantCode(t, err, jobhost.CodeInvalid, "workflow name")
}
