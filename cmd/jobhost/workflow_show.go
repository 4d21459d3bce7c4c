package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// workflowQuery are the flags that select workflows for a list.
type workflowQuery struct {
	filter        jobhost.WorkflowFilter
	status        choice
	after, before instant
	limits        limits
}

func newWorkflowListCommand(e workflowEnv) *cobra.Command {
	q := &workflowQuery{}
	for _, s := range jobhost.WorkflowStatuses() {
		q.status.names = append(q.status.names, string(s))
	}
	q.after.now, q.before.now = e.now, e.now
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List workflows, latest start first",
		Example: `  jobhost workflow ls
  jobhost workflow ls --name order --status failed
  jobhost workflow ls --after 24h --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context(), q) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&q.filter.Name, "name", "", "only workflows of this definition, by its `NAME`")
	flags.Var(&q.status, "status", "only workflows in this `STATUS`")
	flags.StringVar(&q.filter.Parent, "parent", "", "only workflows that are steps of the one with this `ID`")
	flags.Var(&q.after, "after", "only workflows started at `TIME` or later: a time, or how long ago")
	flags.Var(&q.before, "before", "only workflows started before `TIME`")
	q.limits.register(cmd, "workflows")
	complete(cmd, "status", q.status.names...)
	return cmd
}

func (e workflowEnv) list(ctx context.Context, q *workflowQuery) error {
	q.filter.Status, q.filter.After, q.filter.Before = jobhost.WorkflowStatus(q.status.value), q.after.time, q.before.time
	if err := q.filter.Check(); err != nil {
		return asUsage(err)
	}
	most, err := q.limits.most()
	if err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	runs := listing[jobhost.WorkflowRun]{
		things: "workflows", columns: []string{"ID", "NAME", "STATUS", "STARTED", "ENDED", "TOOK", "WHY"},
		cells: func(run *jobhost.WorkflowRun) []string {
			return []string{
				run.ID, run.Name, string(run.Status), e.when(run.StartedAt), e.whenever(run.EndedAt),
				ran(&run.StartedAt, run.EndedAt), shorten(whyEnded(run), mostCell),
			}
		},
	}
	return runs.print(ctx, e.env, most, func(ctx context.Context, cursor string, limit int) ([]jobhost.WorkflowRun, string, error) {
		q.filter.Cursor, q.filter.Limit = cursor, limit
		page, err := server.Workflows(ctx, q.filter)
		return page.Workflows, page.Next, err
	})
}

// whyEnded says why a workflow ended as it did, as far as it is worth it.
func whyEnded(run *jobhost.WorkflowRun) string {
	switch {
	case run.Failure != nil && run.Step != "":
		return run.Step + ": " + run.Failure.Code + ": " + run.Failure.Message
	case run.Failure != nil:
		return run.Failure.Code + ": " + run.Failure.Message
	}
	return run.Reason
}

func (e workflowEnv) show(ctx context.Context, server jobhost.Server, id string) error {
	run, err := server.Workflow(ctx, id)
	if err != nil {
		return err
	}
	return e.print(&run)
}

func (e workflowEnv) print(run *jobhost.WorkflowRun) error {
	if e.wantsJSON() {
		return e.json(run)
	}
	t := e.newTable()
	t.field("id", run.ID)
	t.field("name", run.Name)
	t.field("status", string(run.Status))
	if run.Parent != "" {
		t.field("step of", run.Parent+", "+run.ParentStep)
	}
	t.labels(run.Labels)
	t.field("started", e.when(run.StartedAt))
	t.field("ended", e.whenever(run.EndedAt))
	t.field("took", ran(&run.StartedAt, run.EndedAt))
	if run.Status == jobhost.WorkflowCompleted && run.Step != "" {
		t.field("ended by", run.Step)
	}
	t.field("why", clip(whyEnded(run)))
	t.field("definition", run.Definition[:min(len(run.Definition), 12)])
	if text := string(run.Output); len(text) > mostData {
		t.field("output", fmt.Sprintf("%s… (%s)", text[:mostData], size(len(text))))
	} else {
		t.field("output", text)
	}
	if run.OutputSize > 0 {
		t.field("output size", size(run.OutputSize))
	}
	t.flush()
	e.printSteps(run.Steps)
	return nil
}

// mostSteps is how many steps of a workflow people are shown.
const mostSteps = 100

// printSteps shows steps, those that have not completed first if they are too many.
func (e workflowEnv) printSteps(all []jobhost.StepRun) {
	if len(all) == 0 {
		return
	}
	steps := slices.Clone(all)
	if len(steps) > mostSteps {
		slices.SortStableFunc(steps, func(a, b jobhost.StepRun) int { return completedLast(&a) - completedLast(&b) })
		steps = steps[:mostSteps]
	}
	_, _ = fmt.Fprintln(e.stdout)
	t := e.newTable("STEP", "STATUS", "RUNS", "STARTED", "TOOK", "TASKS", "JOB", "WHY")
	for i := range steps {
		s := &steps[i]
		t.row(s.Name, string(s.Status), number(s.Runs), e.whenever(s.StartedAt), ran(s.StartedAt, s.EndedAt), number(s.Tasks), cmp.Or(s.Workflow, s.Job), shorten(whyStep(s), mostCell))
	}
	t.flush()
	e.andMore(len(all)-len(steps), "further step")
}

// whyStep says what there is to say of where a step stands.
func whyStep(s *jobhost.StepRun) string {
	switch {
	case s.Fallback != "" && s.Status == jobhost.StepCompleted:
		return "by its fallback " + s.Fallback
	case s.Failure != nil:
		return s.Failure.Code + ": " + s.Failure.Message
	}
	return s.Reason
}

func completedLast(s *jobhost.StepRun) int {
	if s.Status == jobhost.StepCompleted || s.Status == jobhost.StepSkipped {
		return 1
	}
	return 0
}

// number shows a number; 0 is nothing.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (e workflowEnv) trace(ctx context.Context, server jobhost.Server, id string) error {
	trace, err := server.TraceWorkflow(ctx, id)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e.env, trace)
	}
	t := e.newTable("TIME", "STEP", "WHAT", "TOOK", "DETAIL")
	for i := range trace {
		entry := &trace[i]
		stamp := entry.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		if e.stdout.terminal {
			stamp = entry.Time.Local().Format("15:04:05.000")
		}
		what := entry.What
		if entry.Attempt > 0 {
			what += " " + strconv.Itoa(entry.Attempt)
		}
		lasted := ""
		if entry.Took > 0 {
			lasted = took(time.Duration(entry.Took))
		}
		detail := entry.Detail
		if entry.Failure != nil {
			detail = entry.Failure.Code + ": " + entry.Failure.Message
		}
		t.row(stamp, entry.Step, what, lasted, shorten(detail, mostCell))
	}
	t.flush()
	return nil
}
