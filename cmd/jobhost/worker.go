package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// workerEnv is env for the commands about workers.
type workerEnv struct{ *env }

func newWorkerCommand(e workerEnv) *cobra.Command {
	return newGroup("worker", "Show workers, and change how they run",
		newWorkerListCommand(e), newWorkerShowCommand(e), newWorkerReloadCommand(e), newWorkerNewCommand(e), newWorkerInspectCommand(e), newWorkerTestCommand(e), newWorkerHTTPCheckCommand(e),
		newWorkerPauseCommand(e), newWorkerDrainCommand(e), newWorkerResumeCommand(e), newWorkerScaleCommand(e),
		newWorkerResetBreakerCommand(e))
}

func newWorkerListCommand(e workerEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the workers of the host with the tasks they have",
		Example: `  jobhost worker ls
  jobhost worker ls -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// all asks the host for its workers.
func (e workerEnv) all(ctx context.Context) ([]jobhost.WorkerStatus, error) {
	server, err := e.server()
	if err != nil {
		return nil, err
	}
	return server.Workers(ctx)
}

func (e workerEnv) list(ctx context.Context) error {
	workers, err := e.all(ctx)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e.env, workers)
	}
	e.listRows(workers)
	return nil
}

// listRows prints a row for each worker.
func (e workerEnv) listRows(workers []jobhost.WorkerStatus) {
	t := e.newTable("NAME", "ABI", "MODE", "BUSY", "WAITING", "SUCCEEDED", "DEAD", "CANCELLED")
	for i := range workers {
		w := &workers[i]
		count := func(states ...jobhost.State) string {
			var n int64
			for _, s := range states {
				n += w.Tasks[s.String()]
			}
			return strconv.FormatInt(n, 10)
		}
		mode := string(w.Mode)
		if w.Disabled != "" {
			mode = "disabled" // whatever it would do otherwise; show tells why
		}
		t.row(w.Name, w.ABI, mode, fmt.Sprintf("%d/%d", w.Busy, w.Slots),
			count(jobhost.Scheduled, jobhost.Ready, jobhost.Retrying, jobhost.Held),
			count(jobhost.Succeeded), count(jobhost.Dead), count(jobhost.Cancelled))
	}
	t.flush()
}

func newWorkerShowCommand(e workerEnv) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a worker: its plugin, limits and tasks",
		Example: `  jobhost worker show wordcount`,
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := jobhost.CheckWorker(args[0]); err != nil {
				return asUsage(err)
			}
			return e.show(cmd.Context(), args[0])
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
}

func (e workerEnv) show(ctx context.Context, name string) error {
	workers, err := e.all(ctx)
	if err != nil {
		return err
	}
	for i := range workers {
		w := &workers[i]
		switch {
		case w.Name != name:
			continue
		case e.wantsJSON():
			return e.json(w)
		}
		e.showFields(w)
		return nil
	}
	return &jobhost.Error{
		Code:    jobhost.CodeNotFound,
		Field:   "worker",
		Message: fmt.Sprintf("the host has no worker %q", name),
		Hint:    "jobhost worker ls",
	}
}

func (e workerEnv) showFields(w *jobhost.WorkerStatus) {
	t := e.newTable()
	t.field("name", w.Name)
	t.field("plugin", w.Plugin)
	t.field("sha256", w.SHA256)
	t.field("version", strconv.Itoa(w.Version))
	t.field("loaded", e.when(w.LoadedAt))
	t.field("abi", w.ABI)
	t.field("entry", w.Entry)
	switch {
	case w.Processes == 1:
		t.field("runs in", "a process of its own")
	case w.Processes > 1:
		t.field("runs in", fmt.Sprintf("%d processes of its own", w.Processes))
	case w.Sandbox != "":
		t.field("runs in", "the host")
	}
	if w.Quarantine != "" {
		t.field("quarantine", w.Quarantine)
	}
	t.field("mode", string(w.Mode))
	if w.Disabled != "" {
		t.field("disabled", w.Disabled)
	}
	t.field("busy", fmt.Sprintf("%d of %s", w.Busy, plural(w.Slots, "slot")))
	if w.Slots != w.PoolSize {
		t.field("scaled", fmt.Sprintf("from %s", plural(w.PoolSize, "slot")))
	}
	t.field("queue", fmt.Sprintf("up to %s", plural(w.QueueCapacity, "task")))
	if w.RateLimit != "" {
		t.field("rate", w.RateLimit)
	}
	if w.ConcurrencyPerKey > 0 {
		t.field("per key", plural(w.ConcurrencyPerKey, "task"))
	}
	if b := w.Breaker; b != nil {
		t.field("breaker", fmt.Sprintf("%s is %s", b.Key, b.State))
		if b.Until != nil {
			t.field("tries at", e.whenever(b.Until))
		}
	}
	t.field("timeout", w.Timeout.String())
	if w.MemoryBytes > 0 {
		t.field("memory", size(w.MemoryBytes))
	}
	t.field("retry", w.Retry)
	for i, s := range jobhost.States() {
		heading := ""
		if i == 0 {
			heading = "tasks"
		}
		// Not a field: further headings are blank rather than dashes.
		_, _ = fmt.Fprintf(t.w, "%s\t%d %v\n", heading, w.Tasks[s.String()], s)
	}
	t.flush()
}

// workerSubject are workers, which commands name.
var workerSubject = subject{
	noun: "worker", arg: "NAME", example: "wordcount", check: jobhost.CheckWorker,
	names: func(ctx context.Context, server jobhost.Server) (names []string) {
		workers, _ := server.Workers(ctx)
		for i := range workers {
			names = append(names, workers[i].Name)
		}
		return names
	},
}

// completeWorkers offers the names of workers to the shell.
func completeWorkers(e *env) cobra.CompletionFunc { return workerSubject.complete(e) }
