package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newWorkflowCommand(e *env) *cobra.Command {
	return newGroup("workflow", "Check, draw, run and follow workflows",
		newWorkflowCheckCommand(e), newWorkflowGraphCommand(e), newWorkflowRunCommand(e), newWorkflowListCommand(e),
		e.oneWorkflow("show", "Show all that is known of a workflow, with its steps", "", e.showWorkflow),
		newWorkflowResultCommand(e),
		e.oneWorkflow("trace", "List what happened in a workflow, in order", "", e.traceWorkflow),
		newWorkflowWatchCommand(e), newWorkflowSignalCommand(e), newWorkflowCancelCommand(e), newWorkflowRetryCommand(e),
		e.oneWorkflow("rm", "Remove a workflow that has ended, with its jobs", "", e.removeWorkflow))
}

// oneWorkflow returns a command about one workflow that was started.
func (e *env) oneWorkflow(verb, short, long string, do func(context.Context, jobhost.Server, string) error) *cobra.Command {
	if long != "" {
		long = short + ".\n\n" + long
	}
	return &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    long,
		Example: "  jobhost workflow " + verb + " wf-order-17",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := e.workflowServer(args[0])
			if err != nil {
				return err
			}
			return do(cmd.Context(), server, args[0])
		},
		ValidArgsFunction: completeWorkflows(e),
	}
}

// workflowServer returns the server to ask about a workflow, whose id is checked first.
func (e *env) workflowServer(id string) (jobhost.Server, error) {
	if err := jobhost.CheckAnyWorkflowID(id); err != nil {
		return nil, asUsage(err)
	}
	return e.server()
}

func (e *env) removeWorkflow(ctx context.Context, server jobhost.Server, id string) error {
	if err := server.DeleteWorkflow(ctx, id); err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(map[string]string{"id": id, "done": "removed"})
	}
	_, err := fmt.Fprintf(e.stdout, "removed %s\n", printable(id))
	return err
}

func newWorkflowCancelCommand(e *env) *cobra.Command {
	reason := ""
	cmd := e.oneWorkflow("cancel", "End a workflow and all that it runs", "", func(ctx context.Context, server jobhost.Server, id string) error {
		run, err := server.CancelWorkflow(ctx, id, reason)
		if err != nil {
			return err
		}
		return e.printWorkflow(&run)
	})
	cmd.Example = `  jobhost workflow cancel wf-order-17
  jobhost workflow cancel wf-order-17 --reason "the order was withdrawn"`
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why, for people")
	return cmd
}

func newWorkflowRetryCommand(e *env) *cobra.Command {
	step := ""
	cmd := e.oneWorkflow("retry", "Run a step that has failed again",
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
			return e.printWorkflow(&run)
		})
	cmd.Example = `  jobhost workflow retry wf-order-17
  jobhost workflow retry wf-order-17 --step pay`
	cmd.Flags().StringVar(&step, "step", "", "`NAME` of the step (default the one that made the workflow fail)")
	return cmd
}

func newWorkflowSignalCommand(e *env) *cobra.Command {
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
			server, err := e.workflowServer(args[0])
			if err != nil {
				return err
			}
			return server.SignalWorkflow(cmd.Context(), args[0], signal)
		},
		ValidArgsFunction: completeWorkflows(e),
	}
	cmd.Flags().StringVar(&payload, "payload", "", "`JSON` that the step returns, or @FILE with it, or - for stdin")
	cmd.Flags().StringVar(&signal.ID, "id", "", "`ID` that makes the signal count once, however often it is sent")
	return cmd
}

// jsonInput reads what a flag gives: JSON as it stands there, or any bytes of @FILE or stdin.
func (e *env) jsonInput(flag, text string, most int) ([]byte, error) {
	if text == "-" || len(text) > 0 && text[0] == '@' {
		file, err := e.open(text[1:], text != "-")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readPayload(file, most)
	}
	if text != "" && !json.Valid([]byte(text)) {
		return nil, &usageError{cause: &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%s is not JSON: %s", flag, clip(text)),
			Hint: `text needs quotes of its own: '"text"'; @FILE and - take any bytes`,
		}}
	}
	return []byte(text), nil
}

// completeWorkflows offers the ids of workflows to the shell, the latest first.
func completeWorkflows(e *env) cobra.CompletionFunc {
	return completeFrom(e, func(ctx context.Context, server jobhost.Server) (ids []string) {
		page, _ := server.Workflows(ctx, jobhost.WorkflowFilter{}) // a shell can't show why there is nothing to offer
		for i := range page.Workflows {
			if jobhost.CheckAnyWorkflowID(page.Workflows[i].ID) == nil {
				ids = append(ids, page.Workflows[i].ID)
			}
		}
		return ids
	})
}

// completeFrom offers what a server has to the shell, for the first argument.
func completeFrom(e *env, ask func(context.Context, jobhost.Server) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		server, err := e.server()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(cmd)), 2*time.Second)
		defer cancel()
		return ask(ctx, server), cobra.ShellCompDirectiveNoFileComp
	}
}
