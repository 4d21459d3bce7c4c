package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// workflowEnv is env for the commands about workflows.
type workflowEnv struct{ *env }

func newWorkflowCommand(e workflowEnv) *cobra.Command {
	return newGroup("workflow", "Check, draw, run and follow workflows",
		newWorkflowCheckCommand(e), newWorkflowGraphCommand(e), newWorkflowRunCommand(e), newWorkflowListCommand(e),
		e.one("show", "Show a workflow in full, with its steps", "", e.show),
		newWorkflowResultCommand(e),
		e.one("trace", "Show what happened in a workflow, in order", "", e.trace),
		newWorkflowWatchCommand(e), newWorkflowSignalCommand(e), newWorkflowCancelCommand(e), newWorkflowRetryCommand(e),
		e.one("rm", "Remove a workflow that has ended, with its jobs", "", e.remove))
}

// workflowSubject are workflows that were started, which commands name by their id; the shell is
// offered the latest first.
var workflowSubject = subject{
	noun: "workflow", arg: "ID", example: "wf-order-17", check: jobhost.CheckAnyWorkflowID,
	names: func(ctx context.Context, server jobhost.Server) (ids []string) {
		page, _ := server.Workflows(ctx, jobhost.WorkflowFilter{})
		for i := range page.Workflows {
			ids = append(ids, page.Workflows[i].ID)
		}
		return ids
	},
}

// one returns a command about one workflow that was started.
func (e workflowEnv) one(verb, short, long string, do func(context.Context, jobhost.Server, string) error) *cobra.Command {
	return workflowSubject.command(e.env, verb, short, long, do)
}

func (e workflowEnv) remove(ctx context.Context, server jobhost.Server, id string) error {
	if err := server.DeleteWorkflow(ctx, id); err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(map[string]string{"id": id, "done": "removed"})
	}
	_, err := fmt.Fprintf(e.stdout, "removed %s\n", printable(id))
	return err
}

func newWorkflowCancelCommand(e workflowEnv) *cobra.Command {
	reason := ""
	cmd := e.one("cancel", "Cancel a workflow and all that it runs", "", func(ctx context.Context, server jobhost.Server, id string) error {
		run, err := server.CancelWorkflow(ctx, id, reason)
		if err != nil {
			return err
		}
		return e.print(&run)
	})
	cmd.Example = `  jobhost workflow cancel wf-order-17
  jobhost workflow cancel wf-order-17 --reason "the order was withdrawn"`
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why, for people")
	return cmd
}

func newWorkflowRetryCommand(e workflowEnv) *cobra.Command {
	step := ""
	cmd := e.one("retry", "Run a failed step again",
		`The workflow goes on from there; steps that have completed don't run again. Without
--step it is the step that made the workflow fail.`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			if step != "" {
				if err := jobhost.CheckStep(step); err != nil {
					return asUsage(err)
				}
			}
			run, err := server.RetryWorkflow(ctx, id, step)
			if err != nil {
				return err
			}
			return e.print(&run)
		})
	cmd.Example = `  jobhost workflow retry wf-order-17
  jobhost workflow retry wf-order-17 --step pay`
	cmd.Flags().StringVar(&step, "step", "", "`NAME` of the step (default the one that made the workflow fail)")
	return cmd
}

func newWorkflowSignalCommand(e workflowEnv) *cobra.Command {
	var payload string
	var signal jobhost.WorkflowSignal
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a workflow a signal",
		Long: `Send a workflow a signal, for the step that waits for one of this name; if none waits
yet, it is kept until one does. The payload is what the step returns.`,
		Example: `  jobhost workflow signal wf-deploy-3 approved
  jobhost workflow signal wf-deploy-3 approved --payload '{"by":"Ada"}' --id mail-9
  jobhost workflow signal wf-deploy-3 approved --payload @answer.json`,
		Args: exactly("ID", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			signal.Name = args[1]
			if signal.Payload, err = e.jsonInput("--payload", payload, jobhost.MaxStepData); err != nil {
				return err
			}
			if err := signal.Check(); err != nil {
				return asUsage(err)
			}
			server, err := workflowSubject.server(e.env, args[0])
			if err != nil {
				return err
			}
			return server.SignalWorkflow(cmd.Context(), args[0], signal)
		},
		ValidArgsFunction: workflowSubject.complete(e.env),
	}
	cmd.Flags().StringVar(&payload, "payload", "", "`JSON` that the step returns, or @FILE to read it from, or - for stdin")
	cmd.Flags().StringVar(&signal.ID, "id", "", "`ID` that makes the signal count once, however often it is sent")
	return cmd
}
