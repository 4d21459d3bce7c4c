package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newStateCleanCommand(e stateEnv) *cobra.Command {
	tombstone, remove, dry := duration(30*24*time.Hour), duration(90*24*time.Hour), false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete old states of jobs that the queue no longer has",
		Long: `Delete old states of jobs that the queue no longer has. (States of jobs in the queue are
deleted with the job.) A job is first marked as deleted, so that its states can't be
continued by mistake, and removed later.`,
		Example: `  jobhost state gc --dry-run
  jobhost state gc --tombstone-age 30d --delete-age 90d`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.clean(cmd.Context(), jobhost.StateCleanup{
				TombstoneAge: jobhost.Duration(tombstone), DeleteAge: jobhost.Duration(remove), DryRun: dry,
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.Var(&tombstone, "tombstone-age", "mark jobs as deleted `DURATION` after their last change")
	flags.Var(&remove, "delete-age", "remove jobs `DURATION` after their last change, which must be longer")
	flags.BoolVar(&dry, "dry-run", false, "change nothing, and show what would change")
	return cmd
}

func (e stateEnv) clean(ctx context.Context, c jobhost.StateCleanup) error {
	if err := c.Check(); err != nil {
		return asUsage(err)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	done, err := server.CleanStates(ctx, c)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(done)
	}
	format := "marked %s as deleted, removed %d\n"
	if done.DryRun {
		format = "would mark %s as deleted, and remove %d\n"
	}
	_, err = fmt.Fprintf(e.stdout, format, plural(done.Tombstoned, "job"), done.Deleted)
	return err
}
