package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// workflowFlags are those of a start.
type workflowFlags struct {
	start     jobhost.WorkflowStart
	input     string
	labels    []string
	retention duration
	wait      bool
	timeout   duration
}

func newWorkflowRunCommand(e workflowEnv) *cobra.Command {
	f := &workflowFlags{}
	cmd := &cobra.Command{
		Use:   "run NAME|FILE",
		Short: "Start a workflow, and wait for it with --wait",
		Long: `Start a workflow and print its id: of a definition of the host by its NAME, or of a FILE
of JSON (- is stdin), whose name ends in .json or has a /.

With --wait changes of its steps are shown on stderr, on a terminal as a list that is
redrawn in place, and its output is printed as JSON at the end. The exit code tells
whether it completed. An interrupt ends the wait, not the workflow.

While the host is starting the command waits for it, for up to 30 seconds, or with
--wait for as long as --timeout says.`,
		Example: `  jobhost workflow run order --input '{"order":17}' --id wf-order-17
  jobhost workflow run ./order.json --input @order-17.json --wait
  jobhost workflow run order --label customer=42 --wait --timeout 10m -o json`,
		Args: exactly("NAME or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(e, args[0]); err != nil {
				return err
			}
			return e.run(cmd.Context(), f)
		},
		ValidArgsFunction: completeDefinitions(e.env),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "`JSON` input, or @FILE to read it from, or - for stdin")
	flags.StringVar(&f.start.ID, "id", "", "`ID` of the workflow, wf-…, which makes starting it again harmless (default a new one)")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` to find the workflow by; may be repeated")
	flags.Var(&f.retention, "retention", "`DURATION` that the workflow is kept after its end (default the host's)")
	flags.BoolVar(&f.wait, "wait", false, "wait for the end and print the output")
	flags.Var(&f.timeout, "timeout", "with --wait, stop waiting after `DURATION`; the workflow goes on")
	return cmd
}

// settle completes and checks the start.
func (f *workflowFlags) settle(e workflowEnv, arg string) (err error) {
	s := &f.start
	if f.timeout > 0 && !f.wait {
		return usagef("--timeout is for --wait only")
	}
	if f.input == "-" && arg == "-" {
		return usagef("stdin can't be the definition and the input")
	}
	if s.Labels, err = labels(f.labels); err != nil {
		return err
	}
	s.Retention = time.Duration(f.retention)
	if s.Input, err = e.jsonInput("--input", f.input, mostPayload); err != nil {
		return err
	}
	if !isDefinitionFile(arg) {
		s.Workflow = arg
		return asUsage(s.Check())
	}
	definition, err := e.readDefinition(arg)
	if err != nil {
		return err
	}
	s.Definition = &definition
	return asUsage(s.Check())
}

func (e workflowEnv) run(ctx context.Context, f *workflowFlags) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	server, err := e.server()
	if err != nil {
		return err
	}
	patience := startPatience
	if f.wait {
		patience = time.Duration(f.timeout)
	}
	if err := e.awaitStart(ctx, server, patience); err != nil {
		return err
	}
	receipt, err := server.StartWorkflow(ctx, f.start)
	if err != nil {
		if f.start.Workflow != "" {
			return e.suggestDefinition(ctx, server, f.start.Workflow, err)
		}
		return inFile("definition", err)
	}
	switch {
	case f.wait:
		return e.await(ctx, server, receipt.ID, time.Duration(f.timeout))
	case e.wantsJSON():
		return e.json(receipt)
	}
	_, err = fmt.Fprintln(e.stdout, printable(receipt.ID))
	return err
}

// await waits for the end of a workflow, for at most a time if that isn't 0, tells of
// its steps and prints what it returned.
func (e workflowEnv) await(ctx context.Context, server jobhost.Server, id string, most time.Duration) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errPatience)
		defer cancel()
	}
	run, err := e.follow(ctx, server, id)
	if err != nil {
		return stoppedFollowing(ctx, id, err)
	}
	if e.wantsJSON() {
		return errors.Join(e.json(run), workflowEnd(&run))
	}
	if err := workflowEnd(&run); err != nil {
		return err
	}
	return e.printOutput(&run)
}

// printOutput prints what a workflow has returned, as JSON.
func (e workflowEnv) printOutput(run *jobhost.WorkflowRun) error {
	switch {
	case run.OutputSize > 0 && run.Output == nil:
		e.note("the output of %s is too large to be shown: jobhost workflow result %s", size(run.OutputSize), run.ID)
		return nil
	case run.Output == nil:
		return nil
	}
	return e.json(run.Output)
}

// workflowEnd returns the error of a workflow that has not completed.
func workflowEnd(run *jobhost.WorkflowRun) error {
	if run.Status == jobhost.WorkflowCompleted {
		return nil
	}
	e := &jobhost.Error{
		Code: jobhost.CodeConflict, Message: fmt.Sprintf("workflow %s is %s", run.ID, run.Status), Hint: "jobhost workflow show " + run.ID,
	}
	if run.Status == jobhost.WorkflowFailed {
		e.Message = fmt.Sprintf("workflow %s has failed", run.ID)
		if run.Step != "" {
			e.Message += " at step " + run.Step
		}
		e.Hint += "; " + mendHint(run)
	}
	if run.Failure != nil {
		e.Message += ": " + failureText(run.Failure)
	} else if run.Reason != "" {
		e.Message += ": " + run.Reason
	}
	return e
}

// mendHint says how a workflow that has failed goes on. One that has begun keeps its definition.
func mendHint(run *jobhost.WorkflowRun) string {
	if run.Failure != nil && run.Failure.Code == jobhost.FailExpression {
		return "if the definition is wrong, correct it, run jobhost worker reload, and start the workflow again: a retry keeps the old definition"
	}
	return "when the cause is gone: jobhost workflow retry " + run.ID
}

// stoppedFollowing is the error of a wait that ended before the workflow did.
func stoppedFollowing(ctx context.Context, id string, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("wait for workflow %s: %w", id, err)
	}
	reason := "waiting for workflow %s was interrupted; the workflow goes on"
	if errors.Is(context.Cause(ctx), errPatience) {
		reason = "workflow %s has not ended in time; it goes on"
	}
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf(reason, id), Hint: "go on watching: jobhost workflow watch " + id}
}
