package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newWorkerReloadCommand(e workerEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "reload [NAME]",
		Short: "Reload the manifest, and workers whose plugin or settings have changed",
		Long: `Reload the manifest, and workers whose plugin or settings have changed.

The host compiles and tries what has changed while the old versions run, and swaps:
running tasks end on the version that they began on. Workflows, schedules and fibers
are those of the manifest then. If there is an error, nothing changes. Tasks of a
worker that the manifest no longer has are held until it is back. With NAME, only that
worker is reloaded.`,
		Example: `  jobhost worker reload
  jobhost worker reload wordcount`,
		Args: between(0, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
				if err := jobhost.CheckWorker(name); err != nil {
					return asUsage(err)
				}
			}
			return e.reload(cmd.Context(), name)
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
}

func (e workerEnv) reload(ctx context.Context, name string) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	report, err := server.Reload(ctx, name)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(report)
	}
	short := func(digest string) string { return digest[:min(len(digest), 12)] }
	t := e.newTable("NAME", "CHANGE", "VERSION", "SHA256", "BEFORE")
	for _, w := range report.Workers {
		version := ""
		if w.Version > 0 {
			version = strconv.Itoa(w.Version)
		}
		t.row(w.Name, string(w.Change), version, short(w.SHA256), short(w.Before))
	}
	t.flush()
	for _, setting := range report.NeedsRestart {
		e.note("%s has changed in the manifest; it needs a restart", setting)
	}
	return nil
}
