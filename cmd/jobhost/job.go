package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobCommand(e *env) *cobra.Command {
	return newGroup("job", "Look at jobs and change their course",
		newJobListCommand(e), newJobShowCommand(e), newJobResultCommand(e), newJobPayloadCommand(e), newJobLogsCommand(e), newJobWhyCommand(e),
		newJobCancelCommand(e), newJobRetryCommand(e), newJobRemoveCommand(e), newJobWatchCommand(e))
}

// oneJob makes a command about the job whose id is the argument.
func (e *env) oneJob(name, short, example string, do func(ctx context.Context, server jobhost.Server, id string) error) *cobra.Command {
	return &cobra.Command{
		Use:     name + " ID",
		Short:   short,
		Example: example,
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := jobhost.CheckID(args[0]); err != nil {
				return asUsage(err)
			}
			server, err := e.server()
			if err != nil {
				return err
			}
			return do(cmd.Context(), server, args[0])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// someJobs checks the ids of commands that take several.
func someJobs(_ *cobra.Command, ids []string) error {
	if len(ids) == 0 {
		return errors.New("ID is missing")
	}
	return checkIDs(ids)
}

func checkIDs(ids []string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, jobhost.CheckID(id))
	}
	return errors.Join(errs...)
}

// jobQuery are the flags that select jobs for a list.
type jobQuery struct {
	worker        string
	parent        string
	labels        []string
	state         jobState
	after, before instant
	limit         int
	all           bool
}

func (q *jobQuery) register(e *env, cmd *cobra.Command, limit bool) {
	q.after.now, q.before.now = e.now, e.now
	flags := cmd.Flags()
	flags.StringVar(&q.worker, "worker", "", "only jobs of this `WORKER`")
	flags.StringVar(&q.parent, "parent", "", "only jobs that the job of this `ID` submitted")
	flags.StringArrayVar(&q.labels, "label", nil, "only jobs with this label, `KEY=VALUE`; may be repeated")
	flags.Var(&q.after, "after", "only jobs submitted at `TIME` or later: a time, or how long ago")
	flags.Var(&q.before, "before", "only jobs submitted before `TIME`")
	if limit {
		flags.IntVar(&q.limit, "limit", 50, "`NUMBER` of jobs to list at most")
		flags.BoolVar(&q.all, "all", false, "list all, whatever the limit")
	}
	_ = cmd.RegisterFlagCompletionFunc("worker", completeWorkers(e))
}

func (q *jobQuery) filter() (jobhost.Filter, error) {
	f := jobhost.Filter{Worker: q.worker, Parent: q.parent, State: jobhost.State(q.state), After: q.after.time, Before: q.before.time}
	if q.worker != "" {
		if err := jobhost.CheckWorker(q.worker); err != nil {
			return f, asUsage(err)
		}
	}
	if q.parent != "" {
		if err := jobhost.CheckID(q.parent); err != nil {
			return f, asUsage(err)
		}
	}
	var err error
	if f.Labels, err = labels(q.labels); err != nil {
		return f, err
	}
	if q.limit < 1 && !q.all {
		return f, usagef("--limit %d is not at least 1", q.limit)
	}
	return f, nil
}

// pages calls do for each page of jobs until the limit is reached. more tells
// that there are further jobs.
func (q *jobQuery) pages(ctx context.Context, server jobhost.Reader, do func([]jobhost.Job) error) (more bool, err error) {
	filter, err := q.filter()
	if err != nil {
		return false, err
	}
	left := q.limit
	for {
		filter.Limit = jobhost.MaxPage
		if !q.all {
			filter.Limit = min(left, jobhost.MaxPage)
		}
		page, err := server.Jobs(ctx, filter)
		if err != nil {
			return false, err
		}
		if err := do(page.Jobs); err != nil {
			return false, err
		}
		left -= len(page.Jobs)
		switch {
		case page.Next == "":
			return false, nil
		case !q.all && left <= 0:
			return true, nil
		case page.Next == filter.Cursor:
			return false, errors.New("list jobs: the server's list does not advance")
		}
		filter.Cursor = page.Next
	}
}

// ran is how long something between two times took; "" while they aren't both known.
func ran(from, to *time.Time) string {
	if from == nil || to == nil || from.IsZero() || to.IsZero() {
		return ""
	}
	return took(to.Sub(*from))
}
