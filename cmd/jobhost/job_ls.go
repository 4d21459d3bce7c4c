package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobListCommand(e jobEnv) *cobra.Command {
	q, l := &jobQuery{}, &limits{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List jobs, newest first",
		Example: `  jobhost job ls
  jobhost job ls --worker wordcount --state running
  jobhost job ls --state dead --after 24h --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context(), q, l) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.register(e.env, cmd)
	l.register(cmd, "jobs")
	cmd.Flags().Var(&q.state, "state", "only jobs with a task in this `STATE`")
	complete(cmd, "state", stateNames()...)
	return cmd
}

func (e jobEnv) list(ctx context.Context, q *jobQuery, l *limits) error {
	filter, err := q.filter()
	if err != nil {
		return err
	}
	most, err := l.most()
	if err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	jobs := listing[jobhost.Job]{
		things: "jobs", columns: []string{"ID", "WORKER", "STATE", "PRIORITY", "TASKS", "SUBMITTED", "ENDED", "TOOK"},
		cells: func(j *jobhost.Job) []string {
			return []string{
				j.ID, j.Worker, j.State.String(), j.Priority.String(), strconv.Itoa(j.TaskCount),
				e.when(j.CreatedAt), e.whenever(j.EndedAt), ran(&j.CreatedAt, j.EndedAt),
			}
		},
	}
	return jobs.print(ctx, e.env, most, func(ctx context.Context, cursor string, limit int) ([]jobhost.Job, string, error) {
		filter.Cursor, filter.Limit = cursor, limit
		page, err := server.Jobs(ctx, filter)
		return page.Jobs, page.Next, err
	})
}
