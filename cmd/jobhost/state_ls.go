package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newStateListCommand(e stateEnv) *cobra.Command {
	var (
		of     stateSelection
		filter jobhost.StateJobFilter
		l      limits
	)
	cmd := &cobra.Command{
		Use:   "ls [JOB]",
		Short: "List the jobs that have states, or the states of one",
		Long: `List the jobs that have states, or the states of one.

States that the host itself reports under the tag _run are shown with a job, but a
job with only those is not listed.`,
		Example: `  jobhost state ls
  jobhost state ls import-2026-02
  jobhost state ls import-2026-02 --tag ingest -o json`,
		Args: between(0, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkListFlags(cmd, len(args) > 0); err != nil {
				return err
			}
			if len(args) == 0 {
				return e.listJobs(cmd.Context(), filter, &l)
			}
			query, err := of.query(cmd, args[0])
			if err != nil {
				return err
			}
			return e.list(cmd.Context(), query)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	of.register(cmd)
	l.register(cmd, "jobs")
	cmd.Flags().BoolVar(&filter.Deleted, "deleted", false, "include jobs that are marked as deleted")
	return cmd
}

// checkListFlags refuses flags that mean nothing with a job, or without.
func checkListFlags(cmd *cobra.Command, job bool) error {
	names, where := []string{"task", "tag", "run"}, "needs a JOB"
	if job {
		names, where = []string{"deleted", "limit", "all"}, "is for lists of jobs"
	}
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("--%s %s", name, where)
		}
	}
	return nil
}

func (e stateEnv) list(ctx context.Context, query jobhost.StateQuery) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	report, err := server.States(ctx, query)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e.env, report.States)
	}
	t := e.newTable("TASK", "TAG", "STATUS", "VERSION", "CHANGED", "MESSAGE")
	for i := range report.States {
		s := &report.States[i]
		t.row(strconv.Itoa(s.TaskID), s.Tag, statusName(s.Status), strconv.FormatInt(s.Version, 10), e.when(s.Timestamp), shorten(s.Message, mostCell))
	}
	t.flush()
	return nil
}

func (e stateEnv) listJobs(ctx context.Context, filter jobhost.StateJobFilter, l *limits) error {
	most, err := l.most()
	if err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	jobs := listing[jobhost.StateJob]{
		things: "jobs", columns: []string{"JOB", "RUN", "TASKS", "STATES", "CREATED", "CHANGED", "DELETED"},
		cells: func(j *jobhost.StateJob) []string {
			return []string{
				j.Job, j.Run, strconv.Itoa(j.Tasks), strconv.Itoa(j.States),
				e.when(j.CreatedAt), e.when(j.ChangedAt), e.whenever(j.DeletedAt),
			}
		},
	}
	return jobs.print(ctx, e.env, most, func(ctx context.Context, cursor string, limit int) ([]jobhost.StateJob, string, error) {
		filter.Cursor, filter.Limit = cursor, limit
		page, err := server.StateJobs(ctx, filter)
		return page.Jobs, page.Next, err
	})
}
