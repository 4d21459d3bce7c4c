package workflow

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// OpenWorkflowOutput returns the output of a workflow as a stream: see [jobhost.WorkflowRunner].
func (e *Engine) OpenWorkflowOutput(ctx context.Context, id string) (jobhost.Content, error) {
	var data []byte
	var ref string
	err := e.store.ViewWorkflows(ctx, func(v record.WorkflowView) error {
		w, err := v.WorkflowByID(id)
		switch {
		case err != nil:
			return err
		case w == nil:
			return notFound(id)
		case w.Status != record.WorkflowCompleted:
			return &jobhost.Error{
				Code: jobhost.CodeConflict, Message: fmt.Sprintf("workflow %s has no output: it is %s", id, statusOf(w.Status)),
				Hint: "jobhost workflow show " + id,
			}
		}
		if ref = w.Ending.OutputRef; ref == "" {
			data, err = v.WorkflowData(w.Key, outputSlot)
		}
		return err
	})
	if err != nil {
		return jobhost.Content{}, fmt.Errorf("read output: %w", err)
	}
	return e.queue.OpenOutput(ctx, data, ref)
}
