package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// operation changes one worker and returns what is known of it then.
type operation func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error)

func newWorkerPauseCommand(e *env) *cobra.Command {
	return e.oneWorker("pause", "Hold a worker's tasks, and go on taking its jobs",
		`Hold a worker's tasks, and go on taking its jobs.

Running tasks end as ever. The worker stays paused until it is resumed, also
over restarts of the host.`,
		func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error) {
			return server.PauseWorker(ctx, worker)
		})
}

func newWorkerDrainCommand(e *env) *cobra.Command {
	return e.oneWorker("drain", "Hold a worker's tasks, and take no more of its jobs",
		`Hold a worker's tasks, and take no more of its jobs.

Running tasks end as ever: the worker is idle when "busy" is 0. It stays so
until it is resumed, also over restarts of the host.`,
		func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error) {
			return server.DrainWorker(ctx, worker)
		})
}

func newWorkerResumeCommand(e *env) *cobra.Command {
	return e.oneWorker("resume", "Go on with a worker that was paused or drained",
		"Go on with a worker that was paused or drained.",
		func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error) {
			return server.ResumeWorker(ctx, worker)
		})
}

func newWorkerResetBreakerCommand(e *env) *cobra.Command {
	return e.oneWorker("reset-breaker", "Close the circuit breaker of a worker",
		`Close the circuit breaker of a worker.

Its tasks run at once, and those of other workers with the same breaker.key.`,
		func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error) {
			return server.ResetBreaker(ctx, worker)
		})
}

// oneWorker makes a command that changes the worker that it names.
func (e *env) oneWorker(verb, short, long string, do operation) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    long,
		Example: "  jobhost worker " + verb + " wordcount",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.operate(cmd.Context(), args[0], do)
		},
		ValidArgsFunction: completeWorkers(e),
	}
}

func newWorkerScaleCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "scale NAME SLOTS",
		Short: "Change how many tasks of a worker run at one time",
		Long: `Change how many tasks of a worker run at one time.

It holds until the host ends or the worker is loaded with other settings;
pool_size in the manifest is for good. Slots that are too many end after the
task that they run.`,
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
			return e.operate(cmd.Context(), args[0],
				func(ctx context.Context, server jobhost.Server, worker string) (jobhost.WorkerStatus, error) {
					return server.ScaleWorker(ctx, worker, slots)
				})
		},
		ValidArgsFunction: completeWorkers(e),
	}
}

// operate changes a worker and shows it.
func (e *env) operate(ctx context.Context, worker string, do operation) error {
	if err := jobhost.CheckWorker(worker); err != nil {
		return asUsage(err)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	status, err := do(ctx, server, worker)
	switch {
	case err != nil:
		return err
	case e.wantsJSON():
		return e.json(&status)
	}
	e.listWorkerRows([]jobhost.WorkerStatus{status})
	return nil
}
