package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func newFiberCommand(e *env) *cobra.Command {
	return newGroup("fiber", "Start fibers, talk to them and stop them",
		newFiberStartCommand(e), newFiberListCommand(e),
		e.oneFiber("status", "Show all that is known of a fiber", "", jobhost.Server.Fiber),
		newFiberSendCommand(e), newFiberWatchCommand(e),
		e.oneFiber("pause", "Keep a fiber from being sent messages", `It works on what it was sent before, and is paused until jobhost fiber resume.`, jobhost.Server.PauseFiber),
		e.oneFiber("resume", "End a pause", "", jobhost.Server.ResumeFiber),
		e.oneFiber("stop", "Tell a fiber to end", `The command doesn't wait for that. The fiber sees that it should end and is stopped
after the host's cancel_grace; it is not started again, whatever its restart policy.`, jobhost.Server.InterruptFiber))
}

// oneFiber returns a command that asks about one fiber and shows it.
func (e *env) oneFiber(verb, short, long string, ask func(jobhost.Server, context.Context, string) (jobhost.Fiber, error)) *cobra.Command {
	if long != "" {
		long = short + ".\n\n" + long
	}
	return &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    long,
		Example: "  jobhost fiber " + verb + " lobby",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := e.fiberServer(args[0])
			if err != nil {
				return err
			}
			f, err := ask(server, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return e.printFiber(&f)
		},
		ValidArgsFunction: completeFibers(e),
	}
}

// fiberServer returns the server to ask about a fiber, whose id is checked first.
func (e *env) fiberServer(id string) (jobhost.Server, error) {
	if err := jobhost.CheckFiber(id); err != nil {
		return nil, asUsage(err)
	}
	return e.server()
}

func (e *env) printFiber(f *jobhost.Fiber) error {
	if e.wantsJSON() {
		return e.json(wire.NewFiber(*f))
	}
	t := e.newTable()
	t.field("id", f.ID)
	t.field("worker", f.Worker)
	t.field("entry", f.Entry)
	t.field("status", string(f.Status))
	t.field("created", e.when(f.CreatedAt))
	t.field("started", e.whenever(f.StartedAt))
	t.field("ended", e.whenever(f.EndedAt))
	t.field("restarts", strconv.Itoa(f.Restarts))
	t.field("received", strconv.FormatUint(f.Received, 10))
	t.field("waiting", strconv.Itoa(f.Waiting))
	t.field("emitted", strconv.FormatUint(f.Emitted, 10))
	t.field("watched by", strconv.Itoa(f.Subscribers))
	t.labels(f.Labels)
	if f.Failure != nil {
		t.field("failure", f.Failure.Code+": "+clip(f.Failure.Message))
	}
	if result := string(f.Result); len(result) > mostData {
		t.field("result", fmt.Sprintf("%s… (%s)", result[:mostData], size(len(result))))
	} else {
		t.field("result", result)
	}
	t.flush()
	return nil
}

func newFiberListCommand(e *env) *cobra.Command {
	var (
		filter jobhost.FiberFilter
		status choice
	)
	for _, s := range jobhost.FiberStatuses() {
		status.names = append(status.names, string(s))
	}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List fibers, and those that have ended lately",
		Example: `  jobhost fiber ls
  jobhost fiber ls --worker chat-room --status idle
  jobhost fiber ls -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter.Status = jobhost.FiberStatus(status.value)
			if err := filter.Check(); err != nil {
				return asUsage(err)
			}
			return e.listFibers(cmd.Context(), filter)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&filter.Worker, "worker", "", "only fibers of this `WORKER`")
	cmd.Flags().Var(&status, "status", "only fibers in this `STATUS`")
	complete(cmd, "status", status.names...)
	return cmd
}

// listFibers prints all fibers, page by page.
func (e *env) listFibers(ctx context.Context, filter jobhost.FiberFilter) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	t := e.newTable()
	if !e.wantsJSON() {
		t.row("ID", "WORKER", "STATUS", "STARTED", "RECEIVED", "EMITTED", "RESTARTS", "FAILURE")
	}
	filter.Limit = jobhost.MaxPage
	for {
		page, err := server.Fibers(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Fibers {
			f := &page.Fibers[i]
			if e.wantsJSON() {
				if err := e.json(f); err != nil {
					return err
				}
				continue
			}
			failure := ""
			if f.Failure != nil {
				failure = f.Failure.Code
			}
			t.row(f.ID, f.Worker, string(f.Status), e.whenever(f.StartedAt),
				strconv.FormatUint(f.Received, 10), strconv.FormatUint(f.Emitted, 10), strconv.Itoa(f.Restarts), failure)
		}
		t.flush()
		if filter.Cursor = page.Next; page.Next == "" {
			return e.stdout.failure()
		}
	}
}

// completeFibers offers the ids of fibers to the shell.
func completeFibers(e *env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var ids []string
		if server, err := e.server(); err == nil && len(args) == 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(cmd)), 2*time.Second)
			defer cancel()
			page, _ := server.Fibers(ctx, jobhost.FiberFilter{}) // a shell can't show why there is nothing to offer
			for i := range page.Fibers {
				if jobhost.CheckFiber(page.Fibers[i].ID) == nil {
					ids = append(ids, page.Fibers[i].ID)
				}
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
