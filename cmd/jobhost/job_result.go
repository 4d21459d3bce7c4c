package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobResultCommand(e jobEnv) *cobra.Command {
	task, file := 0, ""
	cmd := e.one("result", "Write the result of a job, byte for byte",
		`  ID=$(jobhost submit vowels "to be or not to be")
  jobhost job result $ID
  jobhost job result $ID -O vowels.json`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			return e.result(ctx, server, id, task, file)
		})
	cmd.Flags().IntVar(&task, "task", 0, "`INDEX` of the task whose result is wanted")
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "write to `FILE` instead of stdout")
	return cmd
}

func newJobPayloadCommand(e jobEnv) *cobra.Command {
	file := ""
	cmd := e.one("payload", "Write the payload of a job, byte for byte",
		`  ID=$(jobhost submit vowels "to be or not to be")
  jobhost job payload $ID
  jobhost job payload $ID -O input.txt`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			content, err := server.OpenPayload(ctx, id)
			if err != nil {
				return err
			}
			defer func() { _ = content.Close() }()
			if e.wantsJSON() {
				return usagef("a payload is written as it is, not as JSON")
			}
			return resultWriter(e).content("the payload", "jobhost job payload "+id+" -O FILE", content, file)
		})
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "write to `FILE` instead of stdout")
	return cmd
}

func (e jobEnv) result(ctx context.Context, server jobhost.Server, id string, task int, file string) error {
	if task < 0 || task >= jobhost.MaxTasks {
		return usagef("--task %d is not between 0 and %d", task, jobhost.MaxTasks-1)
	}
	if e.wantsJSON() {
		if file != "" {
			return usagef("-O writes the result as it is, not as JSON")
		}
		result, err := server.Result(ctx, id, task)
		if err != nil {
			return err
		}
		return resultWriter(e).result(&outcome{ID: id, Task: task, State: jobhost.Succeeded, data: result.Data}, asIs)
	}
	return resultWriter(e).fetch(ctx, server, id, task, file)
}
