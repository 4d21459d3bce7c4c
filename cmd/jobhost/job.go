package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// jobEnv is env for the commands about jobs.
type jobEnv struct{ *env }

func newJobCommand(e jobEnv) *cobra.Command {
	return newGroup("job", "Show, cancel, retry and remove jobs",
		newJobListCommand(e), newJobShowCommand(e), newJobResultCommand(e), newJobPayloadCommand(e), newJobLogsCommand(e), newJobWhyCommand(e),
		newJobCancelCommand(e), newJobRetryCommand(e), newJobRemoveCommand(e), newJobWatchCommand(e))
}

// jobSubject are jobs, which commands name by their id.
var jobSubject = subject{noun: "job", arg: "ID", check: jobhost.CheckID}

// one makes a command about the job whose id is the argument.
func (e jobEnv) one(name, short, example string, do func(ctx context.Context, server jobhost.Server, id string) error) *cobra.Command {
	cmd := jobSubject.command(e.env, name, short, "", do)
	cmd.Example = example
	return cmd
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
}

func (q *jobQuery) register(e *env, cmd *cobra.Command) {
	q.after.now, q.before.now = e.now, e.now
	flags := cmd.Flags()
	flags.StringVar(&q.worker, "worker", "", "only jobs of this `WORKER`")
	flags.StringVar(&q.parent, "parent", "", "only jobs that the job with this `ID` submitted")
	flags.StringArrayVar(&q.labels, "label", nil, "only jobs with this label, `KEY=VALUE`; may be repeated")
	flags.Var(&q.after, "after", "only jobs submitted at `TIME` or later: a time, or how long ago")
	flags.Var(&q.before, "before", "only jobs submitted before `TIME`")
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
	f.Labels, err = labels(q.labels)
	return f, err
}

// ran is how long something between two times took; "" while they aren't both known.
func ran(from, to *time.Time) string {
	if from == nil || to == nil || from.IsZero() || to.IsZero() {
		return ""
	}
	return took(to.Sub(*from))
}
