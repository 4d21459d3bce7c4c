package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newStateWatchCommand(e stateEnv) *cobra.Command {
	var (
		of    stateSelection
		until statusFlag
	)
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Print the states of a job, and each change of them",
		Long: `Print the states of a job, and each change of them, until it is interrupted.

With --until it ends when all tasks of the job, or the one of --task, have reached
that status under --tag. It waits for tasks in error, which may be tried again.
With -o json each line is an event: replay marks the states that existed, and
sentinel the end of those.`,
		Example: `  jobhost state watch import-2026-02
  jobhost state watch import-2026-02 --tag ingest --until finished
  jobhost state watch import-2026-02 --task 3 -o json | jq .state.message`,
		Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := of.query(cmd, args[0])
			if err != nil {
				return err
			}
			if until.given && query.Tag == "" {
				return usagef("--until needs --tag")
			}
			server, err := e.server()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if until.given {
				return e.watchUntil(ctx, server, query, until.status)
			}
			return e.watch(ctx, server, query, func(*jobhost.StateEvent) bool { return false })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	of.register(cmd)
	cmd.Flags().Var(&until, "until", "end when all tasks have reached `STATUS` under --tag: finished, or a number")
	complete(cmd, "until", statusWords()...)
	return cmd
}

// watch prints events until done says so, or it is interrupted.
func (e stateEnv) watch(ctx context.Context, server jobhost.StateKeeper, query jobhost.StateQuery, done func(*jobhost.StateEvent) bool) error {
	for event, err := range server.WatchStates(ctx, query) {
		if err != nil {
			if ctx.Err() != nil {
				return nil // the user has seen enough
			}
			return fmt.Errorf("watch job %s: %w", query.Job, err)
		}
		if err := e.showEvent(&event); err != nil {
			return err
		}
		if done(&event) {
			return nil
		}
	}
	return nil
}

// watchUntil prints events until all tasks have got to a status.
func (e stateEnv) watchUntil(ctx context.Context, server jobhost.StateKeeper, query jobhost.StateQuery, target int32) error {
	report, err := server.States(ctx, query) // for the number of tasks
	if err != nil {
		return err
	}
	behind := map[int]bool{}
	note := func(task int, status int32) {
		if status < target {
			behind[task] = true
		} else {
			delete(behind, task)
		}
	}
	for task := range report.Tasks {
		if query.Task == nil || task == *query.Task {
			note(task, jobhost.StatusNotStarted)
		}
	}
	told, reached := false, false
	err = e.watch(ctx, server, query, func(event *jobhost.StateEvent) bool {
		if event.Sentinel {
			told = true
		} else {
			note(event.State.TaskID, event.State.Status)
		}
		reached = told && len(behind) == 0
		return reached
	})
	if err == nil && !reached {
		return fmt.Errorf("watch job %s: interrupted before %s had got to %s", query.Job, plural(len(behind), "task"), statusName(target))
	}
	return err
}

// showEvent prints an event in one line.
func (e stateEnv) showEvent(v *jobhost.StateEvent) error {
	if e.wantsJSON() {
		return e.json(v)
	}
	if v.Sentinel {
		return nil
	}
	s := &v.State
	stamp := s.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	if e.stdout.terminal {
		stamp = s.Timestamp.Local().Format("15:04:05.000")
	}
	line := fmt.Sprintf("%s  task %-3d  %-12s  %-11s", stamp, s.TaskID, s.Tag, statusName(s.Status))
	line = strings.TrimRight(line+"  "+clip(s.Message), " ")
	_, err := fmt.Fprintln(e.stdout, printable(line))
	return err
}
