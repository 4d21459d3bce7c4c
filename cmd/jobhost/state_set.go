package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// stateChange is what the flags of state set say.
type stateChange struct {
	state   jobhost.TaskState
	status  statusFlag
	run     string
	tasks   int
	payload string
}

func newStateSetCommand(e stateEnv) *cobra.Command {
	c := &stateChange{}
	cmd := &cobra.Command{
		Use:   "set JOB",
		Short: "Set the state of a task, of a job that runs elsewhere or here",
		Long: `Set the state of a task, of a job that runs elsewhere or here, and print it as it
is stored. By then it is durable, and watchers were notified. --tasks creates a job
that doesn't exist; the number of an existing one doesn't change. Tags that begin
with _ belong to the host.`,
		Example: `  jobhost state set import-2026-02 --tasks 4 --task 0 --tag ingest --status started
  jobhost state set import-2026-02 --task 0 --tag ingest --status 5000 --message "5,000 rows" --payload '{"rows":5000}'
  jobhost state set import-2026-02 --task 0 --tag ingest --status finished`,
		Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.state.JobID = args[0]
			return e.set(cmd.Context(), c)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.IntVar(&c.state.TaskID, "task", 0, "`INDEX` of the task, from 0")
	flags.StringVar(&c.state.Tag, "tag", "", "`TAG`: the stream of work; required")
	flags.Var(&c.status, "status", "`STATUS`: a number, not-started, started, finished, error or warning; required")
	flags.StringVar(&c.state.Message, "message", "", "`TEXT` for people")
	flags.StringVar(&c.payload, "payload", "", "`JSON` object for programs; @FILE or - reads it")
	flags.IntVar(&c.state.SchemaVersion, "schema-version", 0, "`VERSION` of the payload's schema (default 1)")
	flags.StringVar(&c.state.EventID, "event-id", "", "`ID` of the write, which makes sending it again harmless (default a new one)")
	flags.IntVar(&c.tasks, "tasks", 0, "create the job with this `NUMBER` of tasks if it doesn't exist")
	flags.StringVar(&c.run, "run", "", "`RUN` of the job, with states of its own (default the unnamed one)")
	complete(cmd, "status", statusWords()...)
	return cmd
}

func (e stateEnv) set(ctx context.Context, c *stateChange) error {
	if !c.status.given {
		return usagef("--status is missing")
	}
	c.state.Status = c.status.status
	if err := e.readPayload(c); err != nil {
		return err
	}
	if err := errors.Join(checkStateJob(c.state.JobID, c.run), c.state.Check()); err != nil {
		return asUsage(err)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	set, err := server.SetState(ctx, c.run, c.state, c.tasks)
	if err != nil {
		if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Code == jobhost.CodeNotFound && c.tasks == 0 {
			return &jobhost.Error{Code: e.Code, Field: e.Field, Message: e.Message, Hint: "--tasks NUMBER makes it"}
		}
		return err
	}
	if e.wantsJSON() {
		return e.json(&set)
	}
	e.show(&set)
	return nil
}

func (e stateEnv) readPayload(c *stateChange) error {
	if c.payload == "" {
		return nil
	}
	in, err := e.payload(c.payload)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	payload, err := readPayload(in, 2*jobhost.MaxStatePayloadBytes) // with blanks
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, payload); err != nil {
		return usagef("--payload is not JSON: %w", err)
	}
	c.state.Payload = compact.Bytes()
	return nil
}
