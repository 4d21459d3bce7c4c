package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newStateListCommand(e *env) *cobra.Command {
	var (
		of     stateSelection
		filter jobhost.StateJobFilter
		all    bool
	)
	cmd := &cobra.Command{
		Use:   "ls [JOB]",
		Short: "List the jobs that have states, or the states of one",
		Long: `List the jobs that have states, or the states of one.

What the host itself reports under the tag _run of its own jobs is told with a
job, but makes none one that has states.`,
		Example: `  jobhost state ls
  jobhost state ls import-2026-02
  jobhost state ls import-2026-02 --tag ingest -o json`,
		Args: between(0, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkListFlags(cmd, len(args) > 0); err != nil {
				return err
			}
			if len(args) == 0 {
				return e.listStateJobs(cmd.Context(), filter, all)
			}
			query, err := of.query(cmd, args[0])
			if err != nil {
				return err
			}
			return e.listStates(cmd.Context(), query)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	of.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&filter.Deleted, "deleted", false, "list jobs too that are marked as deleted")
	flags.IntVar(&filter.Limit, "limit", 50, "`NUMBER` of jobs to list at most")
	flags.BoolVar(&all, "all", false, "list all jobs, whatever the limit")
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

func (e *env) listStates(ctx context.Context, query jobhost.StateQuery) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	report, err := server.States(ctx, query)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e, report.States)
	}
	t := e.newTable("TASK", "TAG", "STATUS", "VERSION", "CHANGED", "MESSAGE")
	for i := range report.States {
		s := &report.States[i]
		t.row(strconv.Itoa(s.TaskID), s.Tag, statusName(s.Status), strconv.FormatInt(s.Version, 10), e.when(s.Timestamp), shorten(s.Message, mostCell))
	}
	t.flush()
	return nil
}

func (e *env) listStateJobs(ctx context.Context, filter jobhost.StateJobFilter, all bool) error {
	left := filter.Limit
	if left < 1 && !all {
		return usagef("--limit %d is not at least 1", left)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	t := e.newTable()
	if !e.wantsJSON() {
		t.row("JOB", "RUN", "TASKS", "STATES", "CREATED", "CHANGED", "DELETED")
	}
	for {
		filter.Limit = jobhost.MaxPage
		if !all {
			filter.Limit = min(left, jobhost.MaxPage)
		}
		page, err := server.StateJobs(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if err := e.showStateJob(t, &page.Jobs[i]); err != nil {
				return err
			}
		}
		t.flush()
		left -= len(page.Jobs)
		switch {
		case page.Next == "":
			return e.stdout.failure()
		case !all && left <= 0:
			if e.stdout.terminal {
				e.note("there are more jobs; --limit or --all shows them")
			}
			return e.stdout.failure()
		case page.Next == filter.Cursor:
			return errors.New("list jobs: the server's list does not advance")
		}
		filter.Cursor = page.Next
	}
}

func (e *env) showStateJob(t *table, j *jobhost.StateJob) error {
	if e.wantsJSON() {
		return e.json(j)
	}
	t.row(j.Job, j.Run, strconv.Itoa(j.Tasks), strconv.Itoa(j.States), e.when(j.CreatedAt), e.when(j.ChangedAt), e.whenever(j.DeletedAt))
	return nil
}
