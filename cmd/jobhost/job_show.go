package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// mostTasks is how many tasks of a job people are shown.
const mostTasks = 50

func newJobShowCommand(e jobEnv) *cobra.Command {
	task := -1
	cmd := e.one("show", "Show a job in full",
		`  ID=$(jobhost submit wordcount "to be or not to be")
  jobhost job show $ID
  jobhost job show $ID --task 3`, func(ctx context.Context, server jobhost.Server, id string) error {
			if task < 0 {
				return e.show(ctx, server, id)
			}
			return e.showTask(ctx, server, id, task)
		})
	cmd.Flags().IntVar(&task, "task", -1, "`INDEX` of the only task to show (default all)")
	cmd.Flags().Lookup("task").DefValue = "0" // so that it is not shown: the text says what is meant
	return cmd
}

// showTask shows one task of a job, with its failures.
func (e jobEnv) showTask(ctx context.Context, server jobhost.Server, id string, task int) error {
	job, err := server.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case task >= len(job.Tasks):
		return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("job %s has no task %d, it has %d", id, task, len(job.Tasks))}
	}
	job.Tasks = job.Tasks[task : task+1]
	job.Failures = slices.DeleteFunc(job.Failures, func(f jobhost.Failure) bool { return f.Task != task })
	if e.wantsJSON() {
		return e.json(job)
	}
	e.showTasks(&job)
	for i := range job.Failures {
		e.showFailure(&job, &job.Failures[i])
	}
	if len(job.Failures) > 0 {
		_, _ = fmt.Fprintf(e.stdout, "\nwhat it logged: jobhost job logs %s\n", printable(job.ID))
	}
	return nil
}

func (e jobEnv) show(ctx context.Context, server jobhost.Server, id string) error {
	job, err := server.Job(ctx, id)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(job)
	}
	e.showFields(&job)
	e.showTasks(&job)
	for i := range job.Failures {
		e.showFailure(&job, &job.Failures[i])
	}
	return nil
}

func (e jobEnv) showFields(j *jobhost.Job) {
	t := e.newTable()
	t.field("id", j.ID)
	t.field("worker", j.Worker)
	t.field("parent", j.Parent)
	t.field("workflow", j.Workflow)
	t.field("step", j.Step)
	t.field("state", j.State.String())
	t.field("priority", j.Priority.String())
	t.field("entry", j.Entry)
	payload := size(j.PayloadSize)
	if j.ContentType != "" {
		payload += " of " + j.ContentType
	}
	t.field("payload", payload)
	t.field("attempts", fmt.Sprintf("at most %d, up to %v each", j.MaxAttempts, j.Timeout))
	t.labels(j.Labels)
	for _, f := range []struct{ name, value string }{
		{"key", j.ConcurrencyKey}, {"unique key", j.UniqueKey},
	} {
		if f.value != "" {
			t.field(f.name, f.value)
		}
	}
	if j.Callback != nil {
		t.field("callback", cmp.Or(j.Callback.URL, j.Callback.Worker))
	}
	t.field("submitted", e.when(j.CreatedAt))
	if j.Deadline != nil {
		t.field("deadline", e.whenever(j.Deadline))
	}
	t.field("ended", e.whenever(j.EndedAt))
	t.field("took", ran(&j.CreatedAt, j.EndedAt))
	if j.TaskCount > 1 {
		t.field("tasks", countTasks(j))
	}
	t.flush()
}

// countTasks says how many tasks are in which state.
func countTasks(j *jobhost.Job) string {
	var counts jobhost.Counts
	for i := range j.Tasks {
		if s := j.Tasks[i].State; s <= jobhost.Cancelled {
			counts[s]++
		}
	}
	var parts []string
	for _, s := range jobhost.States() {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", counts[s], s))
		}
	}
	if len(parts) == 0 {
		return strconv.Itoa(j.TaskCount)
	}
	return fmt.Sprintf("%d: %s", j.TaskCount, strings.Join(parts, ", "))
}

// showTasks shows the tasks, those without success first if they are too many.
func (e jobEnv) showTasks(j *jobhost.Job) {
	tasks := slices.Clone(j.Tasks)
	if len(tasks) == 0 {
		return
	}
	if len(tasks) > mostTasks {
		slices.SortStableFunc(tasks, func(a, b jobhost.Task) int {
			return rank(a.State) - rank(b.State)
		})
		tasks = tasks[:mostTasks]
	}
	_, _ = fmt.Fprintln(e.stdout)
	headings := []string{"TASK", "STATE", "ATTEMPT", "READY", "STARTED", "ENDED", "RAN", "RESULT", "PROGRESS"}
	fuelled := slices.ContainsFunc(tasks, func(task jobhost.Task) bool { return task.Fuel > 0 })
	if fuelled {
		headings = append(headings, "FUEL")
	}
	t := e.newTable(headings...)
	for i := range tasks {
		task := &tasks[i]
		ready, result, progress := e.when(task.ReadyAt), "", ""
		if task.State == jobhost.Running || task.State.Ended() {
			ready = "" // it is no news any more
		}
		if task.State == jobhost.Succeeded {
			result = size(task.ResultSize)
		}
		if task.Total > 0 {
			progress = fmt.Sprintf("%d/%d", task.Done, task.Total)
		}
		cells := []string{
			strconv.Itoa(task.Index), task.State.String(), strconv.Itoa(task.Attempt), ready,
			e.whenever(task.StartedAt), e.whenever(task.EndedAt), ran(task.StartedAt, task.EndedAt), result, progress,
		}
		if fuelled {
			cells = append(cells, strconv.FormatInt(task.Fuel, 10))
		}
		t.row(cells...)
	}
	t.flush()
	e.andMore(len(j.Tasks)-len(tasks), "further task")
}

func rank(s jobhost.State) int {
	if s == jobhost.Succeeded {
		return 1
	}
	return 0
}

// showFailure shows the record of a failed attempt.
func (e jobEnv) showFailure(j *jobhost.Job, f *jobhost.Failure) {
	where := fmt.Sprintf("attempt %d", f.Attempt)
	if j.TaskCount > 1 {
		where = fmt.Sprintf("task %d, %s", f.Task, where)
	}
	kind := []string{string(f.Category), string(f.Severity)}
	if !f.Retryable {
		kind = append(kind, "permanent")
	}
	when := e.when(f.EndedAt)
	if d := ran(&f.StartedAt, &f.EndedAt); d != "" {
		when += ", ran " + d
	}
	_, _ = fmt.Fprintf(e.stdout, "\n%s: %s (%s)  %s\n", where, printable(f.Code), printable(strings.Join(kind, ", ")), when)
	for _, lines := range []string{f.Message, f.Context, f.Stack} {
		if lines != "" {
			_, _ = fmt.Fprintf(e.stdout, "    %s\n", text.Indent(lines))
		}
	}
}
