package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// operation changes one worker and returns what is known of it then.
type operation func(server jobhost.Server, ctx context.Context, worker string) (jobhost.WorkerStatus, error)

func newWorkerPauseCommand(e workerEnv) *cobra.Command {
	return e.one("pause", "Hold a worker's tasks, but accept its jobs",
		`Running tasks finish normally. The worker stays paused until it is resumed, also
after restarts of the host.`, jobhost.Server.PauseWorker)
}

func newWorkerDrainCommand(e workerEnv) *cobra.Command {
	return e.one("drain", "Hold a worker's tasks, and accept no more of its jobs",
		`Running tasks finish normally: the worker is idle when "busy" is 0. It stays
drained until it is resumed, also after restarts of the host.`, jobhost.Server.DrainWorker)
}

func newWorkerResumeCommand(e workerEnv) *cobra.Command {
	return e.one("resume", "Resume a worker that was paused or drained", "", jobhost.Server.ResumeWorker)
}

func newWorkerResetBreakerCommand(e workerEnv) *cobra.Command {
	return e.one("reset-breaker", "Close the circuit breaker of a worker",
		`Its tasks run at once, and those of other workers with the same breaker.key.`, jobhost.Server.ResetBreaker)
}

// one makes a command that changes the worker that it names.
func (e workerEnv) one(verb, short, long string, do operation) *cobra.Command {
	return workerSubject.command(e.env, verb, short, long, func(ctx context.Context, server jobhost.Server, worker string) error {
		return e.operate(ctx, server, worker, do)
	})
}

func newWorkerScaleCommand(e workerEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "scale NAME SLOTS",
		Short: "Change the maximum of a worker's concurrent tasks",
		Long: `Change the maximum of a worker's concurrent tasks.

The change lasts until the host stops or the worker is reloaded with other settings;
pool_size in the manifest is permanent. Surplus slots end after their current task.`,
		Example: "  jobhost worker scale wordcount 8",
		Args:    exactly("NAME", "SLOTS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			slots, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("%q is not a number of slots", args[1])
			}
			if err := jobhost.CheckSlots(slots); err != nil {
				return asUsage(err)
			}
			server, err := workerSubject.server(e.env, args[0])
			if err != nil {
				return err
			}
			return e.operate(cmd.Context(), server, args[0],
				func(server jobhost.Server, ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
					return server.ScaleWorker(ctx, worker, slots)
				})
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
}

// operate changes a worker and shows it.
func (e workerEnv) operate(ctx context.Context, server jobhost.Server, worker string, do operation) error {
	status, err := do(server, ctx, worker)
	switch {
	case err != nil:
		return err
	case e.wantsJSON():
		return e.json(&status)
	}
	e.listRows([]jobhost.WorkerStatus{status})
	return nil
}
