package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobListCommand(e *env) *cobra.Command {
	q := &jobQuery{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List jobs, the newest first",
		Example: `  jobhost job ls
  jobhost job ls --worker wordcount --state running
  jobhost job ls --state dead --after 24h --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.listJobs(cmd.Context(), q) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.register(e, cmd, true)
	cmd.Flags().Var(&q.state, "state", "only jobs with a task in this `STATE`")
	complete(cmd, "state", stateNames()...)
	return cmd
}

func (e *env) listJobs(ctx context.Context, q *jobQuery) error {
	l := listing{columns: []string{"ID", "WORKER", "STATE", "PRIORITY", "TASKS", "SUBMITTED", "ENDED", "TOOK"}}
	l.cells = func(j *jobhost.Job) []string {
		return []string{
			j.ID, j.Worker, j.State.String(), j.Priority.String(), strconv.Itoa(j.TaskCount),
			e.when(j.CreatedAt), e.whenever(j.EndedAt), ran(&j.CreatedAt, j.EndedAt),
		}
	}
	return e.list(ctx, q, &l)
}

// listing says how jobs are listed.
type listing struct {
	columns []string
	cells   func(*jobhost.Job) []string
}

// list prints the jobs that are asked for, page by page.
func (e *env) list(ctx context.Context, q *jobQuery, l *listing) error {
	if _, err := q.filter(); err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	t := e.newTable()
	if !e.wantsJSON() {
		t.row(l.columns...)
	}
	more, err := q.pages(ctx, server, func(jobs []jobhost.Job) error {
		for i := range jobs {
			if !e.wantsJSON() {
				t.row(l.cells(&jobs[i])...)
			} else if err := e.json(&jobs[i]); err != nil {
				return err
			}
		}
		t.flush()
		return e.stdout.failure()
	})
	if err == nil && more && e.stdout.terminal {
		e.note("there are more jobs; --limit or --all shows them")
	}
	return err
}
