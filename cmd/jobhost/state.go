package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// stateEnv is env for the commands about states.
type stateEnv struct{ *env }

func newStateCommand(e stateEnv) *cobra.Command {
	return newGroup("state", "Show, watch and set the states that tasks report",
		newStateListCommand(e), newStateGetCommand(e), newStateSetCommand(e), newStateWatchCommand(e), newStateCleanCommand(e), newStateRemoveCommand(e))
}

// The names of statuses. Others are numbers.
var statusNames = []struct {
	status int32
	name   string
}{
	{jobhost.StatusNotStarted, "not started"},
	{jobhost.StatusStarted, "started"},
	{jobhost.StatusFinished, "finished"},
	{jobhost.StatusError, "error"},
	{jobhost.StatusWarning, "warning"},
}

func statusName(status int32) string {
	for _, s := range statusNames {
		if s.status == status {
			return s.name
		}
	}
	return strconv.Itoa(int(status))
}

// statusFlag is a flag for a status, by its name or number.
type statusFlag struct {
	status int32
	given  bool
}

func (s *statusFlag) Type() string { return "status" }

func (s *statusFlag) String() string {
	if !s.given {
		return ""
	}
	return statusName(s.status)
}

func (s *statusFlag) Set(text string) error {
	s.given = true
	for _, known := range statusNames {
		if strings.ReplaceAll(text, "-", " ") == known.name {
			s.status = known.status
			return nil
		}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("use %s, or a number", strings.Join(statusWords(), ", "))
	}
	s.status = int32(n)
	return nil
}

// statusWords are the names of statuses as they are typed.
func statusWords() []string {
	words := make([]string, len(statusNames))
	for i, s := range statusNames {
		words[i] = strings.ReplaceAll(s.name, " ", "-")
	}
	return words
}

// stateSelection are the flags that select states of a job.
type stateSelection struct {
	task     int
	tag, run string
}

func (s *stateSelection) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&s.task, "task", 0, "only states of the task with this `INDEX`, from 0 (default all)")
	flags.StringVar(&s.tag, "tag", "", "only states under this `TAG` (default all)")
	s.registerRun(cmd)
}

func (s *stateSelection) registerRun(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.run, "run", "", "`RUN` of the job, with states of its own (default the unnamed one)")
}

func (s *stateSelection) query(cmd *cobra.Command, job string) (jobhost.StateQuery, error) {
	query := jobhost.StateQuery{Job: job, Run: s.run, Tag: s.tag}
	if f := cmd.Flags().Lookup("task"); f != nil && f.Changed {
		if s.task < 0 {
			return query, usagef("--task %d is not at least 0", s.task)
		}
		query.Task = &s.task
	}
	if s.tag != "" {
		if err := jobhost.CheckTag(s.tag); err != nil {
			return query, asUsage(err)
		}
	}
	return query, checkStateJob(job, s.run)
}

func checkStateJob(job, run string) error {
	return asUsage(cmp.Or(jobhost.CheckID(job), jobhost.CheckRun(run)))
}

// show shows a state in a line of its own for each thing that is known of it.
func (e stateEnv) show(s *jobhost.TaskState) {
	t := e.newTable()
	t.field("status", statusName(s.Status))
	t.field("task", strconv.Itoa(s.TaskID))
	t.field("tag", s.Tag)
	t.field("message", s.Message)
	if len(s.Payload) > 0 {
		t.field("payload", clip(string(s.Payload)))
		t.field("schema", strconv.Itoa(s.SchemaVersion))
	}
	if s.Version > 0 {
		t.field("version", strconv.FormatInt(s.Version, 10))
		t.field("event id", s.EventID)
		t.field("changed", e.when(s.Timestamp))
	}
	t.flush()
}

func newStateRemoveCommand(e stateEnv) *cobra.Command {
	var of stateSelection
	cmd := &cobra.Command{
		Use:   "rm JOB…",
		Short: "Remove all states of jobs that the queue doesn't know",
		Long: `Remove all states of jobs that are not in the queue. The states of a job in the
queue are removed with it: jobhost job rm. Watchers are notified.`,
		Example: `  jobhost state rm import-2026-02
  jobhost state rm import --run monday`,
		Args: someJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.remove(cmd.Context(), args, of.run)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	of.registerRun(cmd)
	return cmd
}

func (e stateEnv) remove(ctx context.Context, jobs []string, run string) error {
	for _, job := range jobs {
		if err := checkStateJob(job, run); err != nil {
			return err
		}
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := server.DeleteStates(ctx, job, run); err != nil {
			return err
		}
	}
	return nil
}
