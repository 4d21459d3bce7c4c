package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobCancelCommand(e jobEnv) *cobra.Command {
	return e.eachTask("cancel", "Cancel jobs: waiting tasks never run, running ones are stopped",
		`  ID=$(jobhost submit wordcount "to be or not to be" --delay 1h)
  jobhost job cancel $ID
  jobhost job cancel $ID --task 3`, cancelJob, jobhost.Server.CancelTask)
}

func newJobRetryCommand(e jobEnv) *cobra.Command {
	return e.eachTask("retry", "Run dead or cancelled jobs again, with all their attempts",
		`  jobhost job ls --state dead
  jobhost job retry $ID
  jobhost job retry $ID --task 3`, retryJob, jobhost.Server.RetryTask)
}

func newJobRemoveCommand(e jobEnv) *cobra.Command {
	return e.each("rm", "Remove jobs that have ended, with their results",
		`  jobhost job rm $ID`, removeJob)
}

// change is something done to one job.
type change struct {
	verb, done string // "retry", "retried"
	do         func(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error)
}

var (
	cancelJob = change{verb: "cancel", done: "cancelled", do: func(ctx context.Context, s jobhost.Server, id string) (jobhost.Job, error) {
		return s.Cancel(ctx, id)
	}}
	retryJob = change{verb: "retry", done: "retried", do: func(ctx context.Context, s jobhost.Server, id string) (jobhost.Job, error) {
		return s.Retry(ctx, id)
	}}
	removeJob = change{verb: "remove", done: "removed", do: func(ctx context.Context, s jobhost.Server, id string) (jobhost.Job, error) {
		return jobhost.Job{}, s.Delete(ctx, id)
	}}
)

// changed is what became of a job, as JSON.
type changed struct {
	ID   string `json:"id"`
	Done string `json:"done,omitempty"`
	// State is the job's afterwards, unless it was removed.
	State jobhost.State  `json:"state,omitempty"`
	Error *jobhost.Error `json:"error,omitempty"`
}

// eachTask is each for a change that can also be made to one task of each.
func (e jobEnv) eachTask(name, short, example string, c change,
	one func(server jobhost.Server, ctx context.Context, id string, task int) (jobhost.Job, error),
) *cobra.Command {
	task := -1
	both := c
	both.do = func(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error) {
		if task < 0 {
			return c.do(ctx, server, id)
		}
		return one(server, ctx, id, task)
	}
	cmd := e.each(name, short, example, both)
	cmd.Flags().IntVar(&task, "task", -1, "`INDEX` of the only task to "+name+" (default all)")
	cmd.Flags().Lookup("task").DefValue = "0" // so that it is not shown: the text says what is meant
	return cmd
}

// each makes a command that changes jobs named by their ids, all it can.
func (e jobEnv) each(name, short, example string, c change) *cobra.Command {
	return &cobra.Command{
		Use:     name + " ID…",
		Short:   short,
		Example: example,
		Args:    someJobs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			server, err := e.server()
			if err != nil {
				return err
			}
			return e.change(cmd.Context(), server, ids, c)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// change changes the jobs and tells of each. One that fails leaves the
// others alone.
func (e jobEnv) change(ctx context.Context, server jobhost.Server, ids []string, c change) error {
	failed := false
	for _, id := range ids {
		job, err := c.do(ctx, server, id)
		if err := e.tellChange(id, c, &job, err); err != nil {
			return err
		}
		failed = failed || err != nil
	}
	if failed {
		return errReported
	}
	return nil
}

// tellChange tells what became of a job. The error is of the telling.
func (e jobEnv) tellChange(id string, c change, job *jobhost.Job, err error) error {
	if err != nil {
		e.report(fmt.Errorf("%s job %s: %w", c.verb, id, err))
	}
	if e.wantsJSON() {
		answer := changed{ID: id, State: job.State}
		if err == nil {
			answer.Done = c.done
		} else {
			answer.Error = &jobhost.Error{Code: jobhost.CodeOf(err), Message: err.Error(), Hint: jobhost.HintOf(err)}
		}
		return e.json(answer)
	}
	if err != nil {
		return nil //nolint:nilerr // it was told above; the error returned is of the telling
	}
	_, writeErr := fmt.Fprintf(e.stdout, "%s %s\n", c.done, printable(id))
	return writeErr
}
