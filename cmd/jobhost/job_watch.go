package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
)

// mostData is how much of an output people are shown in an event, in bytes.
const mostData = 200

// lastEvents is how long to wait for the events of a job that is known to have
// ended: they are sent on another connection than the end itself.
const lastEvents = 2 * time.Second

func newJobWatchCommand(e jobEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [ID]",
		Short: "Print what happens to all jobs, or to one until it ends",
		Long: `Print what happens to all jobs, or to one until it ends.

With an ID the exit code tells whether the job succeeded.`,
		Example: `  jobhost job watch
  jobhost job watch $ID
  jobhost job watch -o json | jq 'select(.kind == "dead")'`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkIDs(args); err != nil {
				return asUsage(err)
			}
			server, err := e.server()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if len(args) == 0 {
				return e.watchAll(ctx, server)
			}
			return e.watch(ctx, server, args[0])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// watchAll prints events until it is interrupted.
func (e jobEnv) watchAll(ctx context.Context, server jobhost.Watcher) error {
	for event, err := range server.Events(ctx, jobhost.EventQuery{}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil // the user has seen enough
			}
			return fmt.Errorf("watch jobs: %w", err)
		}
		if err := e.showEvent(&event); err != nil {
			return err
		}
	}
	return nil
}

// watch prints the events of a job until it has ended. Its end is awaited
// besides, since it may come before the first event is asked for.
func (e jobEnv) watch(ctx context.Context, server jobhost.Server, id string) error {
	job, err := server.Job(ctx, id)
	if err != nil {
		return err
	}
	if !job.State.Ended() {
		if job, err = e.watchUntilEnd(ctx, server, id); err != nil {
			return err
		}
	}
	if job.State != jobhost.Succeeded {
		var last *jobhost.Failure
		if n := len(job.Failures); n > 0 && job.State == jobhost.Dead {
			last = &job.Failures[n-1]
		}
		return endedBadly(&job, last)
	}
	if !e.wantsJSON() {
		e.note("job %s succeeded", id)
	}
	return nil
}

func (e jobEnv) watchUntilEnd(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var (
		job jobhost.Job
		all errgroup.Group
	)
	all.Go(func() error {
		if _, err := server.Wait(ctx, id); err != nil {
			stop()
			return stoppedWaiting(ctx, id, err)
		}
		timer := time.AfterFunc(lastEvents, stop)
		<-watching.Done()
		timer.Stop()
		var err error
		job, err = server.Job(ctx, id) // with its failures
		return err
	})
	all.Go(func() error {
		defer stop()
		for event, err := range server.Events(watching, jobhost.EventQuery{Job: id}) {
			if err != nil {
				if watching.Err() != nil {
					return nil
				}
				// The end is still awaited, and told.
				e.report(fmt.Errorf("watch job %s: %w", id, err))
				return nil
			}
			if err := e.showEvent(&event); err != nil {
				return err
			}
			if event.Kind == jobhost.EventEnded && event.Job == id {
				return nil
			}
		}
		return nil
	})
	err := all.Wait()
	return job, err
}

// showEvent prints an event in one line.
func (e jobEnv) showEvent(v *jobhost.Event) error {
	if e.wantsJSON() {
		return e.json(v)
	}
	stamp := v.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	if e.stdout.terminal {
		stamp = v.Time.Local().Format("15:04:05.000")
	}
	line := fmt.Sprintf("%s  %s  %-12s  %-9s", stamp, v.Job, v.Worker, v.Kind)
	if v.Kind != jobhost.EventSubmitted && v.Kind != jobhost.EventEnded {
		line += fmt.Sprintf("  task %d", v.Task)
		if v.Attempt > 0 {
			line += fmt.Sprintf(" attempt %d", v.Attempt)
		}
	}
	if text := eventText(v); text != "" {
		line += "  " + text
	}
	if _, err := fmt.Fprintln(e.stdout, printable(line)); err != nil {
		return err
	}
	return nil
}

// eventText is what an event says besides its kind.
func eventText(v *jobhost.Event) string {
	switch {
	case v.Failure != nil:
		return v.Failure.Code + ": " + clip(v.Failure.Message)
	case v.Kind == jobhost.EventProgress && v.Total > 0:
		return fmt.Sprintf("%d/%d", v.Done, v.Total)
	case v.Kind == jobhost.EventProgress:
		return fmt.Sprint(v.Done)
	case v.Kind == jobhost.EventOutput && len(v.Data) > mostData:
		return fmt.Sprintf("%s… (%s)", v.Data[:mostData], size(len(v.Data)))
	case v.Kind == jobhost.EventOutput:
		return string(v.Data)
	case v.Kind == jobhost.EventEnded:
		return v.State.String()
	}
	return ""
}
