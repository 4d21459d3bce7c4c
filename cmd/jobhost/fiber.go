package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// fiberEnv is env for the commands about fibers.
type fiberEnv struct{ *env }

func newFiberCommand(e fiberEnv) *cobra.Command {
	return newGroup("fiber", "Start fibers, talk to them and stop them",
		newFiberStartCommand(e), newFiberListCommand(e),
		e.one("status", "Show a fiber in full", "", jobhost.Server.Fiber),
		newFiberSendCommand(e), newFiberWatchCommand(e),
		e.one("pause", "Stop sending messages to a fiber", `It finishes the messages that it has, and is paused until jobhost fiber resume.`, jobhost.Server.PauseFiber),
		e.one("resume", "Resume a fiber that is paused", "", jobhost.Server.ResumeFiber),
		e.one("stop", "Stop a fiber", `The command doesn't wait for the end. The fiber is asked to end and is stopped after
the host's cancel_grace; it is not restarted, whatever its restart policy.`, jobhost.Server.InterruptFiber))
}

// fiberSubject are fibers, which commands name by their id.
var fiberSubject = subject{
	noun: "fiber", arg: "ID", example: "lobby", check: jobhost.CheckFiber,
	names: func(ctx context.Context, server jobhost.Server) (ids []string) {
		page, _ := server.Fibers(ctx, jobhost.FiberFilter{})
		for i := range page.Fibers {
			ids = append(ids, page.Fibers[i].ID)
		}
		return ids
	},
}

// one returns a command that asks about one fiber and shows it.
func (e fiberEnv) one(verb, short, long string, ask func(jobhost.Server, context.Context, string) (jobhost.Fiber, error)) *cobra.Command {
	return fiberSubject.command(e.env, verb, short, long, func(ctx context.Context, server jobhost.Server, id string) error {
		f, err := ask(server, ctx, id)
		if err != nil {
			return err
		}
		return e.print(&f)
	})
}

func (e fiberEnv) print(f *jobhost.Fiber) error {
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

func newFiberListCommand(e fiberEnv) *cobra.Command {
	var (
		filter jobhost.FiberFilter
		status choice
	)
	for _, s := range jobhost.FiberStatuses() {
		status.names = append(status.names, string(s))
	}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List fibers, including those that ended recently",
		Example: `  jobhost fiber ls
  jobhost fiber ls --worker chat-room --status idle
  jobhost fiber ls -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter.Status = jobhost.FiberStatus(status.value)
			if err := filter.Check(); err != nil {
				return asUsage(err)
			}
			return e.list(cmd.Context(), filter)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&filter.Worker, "worker", "", "only fibers of this `WORKER`")
	cmd.Flags().Var(&status, "status", "only fibers in this `STATUS`")
	complete(cmd, "status", status.names...)
	return cmd
}

// list prints all fibers, page by page.
func (e fiberEnv) list(ctx context.Context, filter jobhost.FiberFilter) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	l := listing[jobhost.Fiber]{
		things: "fibers", columns: []string{"ID", "WORKER", "STATUS", "STARTED", "RECEIVED", "EMITTED", "RESTARTS", "FAILURE"},
		cells: func(f *jobhost.Fiber) []string {
			failure := ""
			if f.Failure != nil {
				failure = f.Failure.Code
			}
			return []string{
				f.ID, f.Worker, string(f.Status), e.whenever(f.StartedAt),
				strconv.FormatUint(f.Received, 10), strconv.FormatUint(f.Emitted, 10), strconv.Itoa(f.Restarts), failure,
			}
		},
	}
	return l.print(ctx, e.env, 0, func(ctx context.Context, cursor string, limit int) ([]jobhost.Fiber, string, error) {
		filter.Cursor, filter.Limit = cursor, limit
		page, err := server.Fibers(ctx, filter)
		return page.Fibers, page.Next, err
	})
}
