package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobResultCommand(e *env) *cobra.Command {
	task, file := 0, ""
	cmd := e.oneJob("result", "Write the result of a job, byte for byte",
		`  ID=$(jobhost submit vowels "to be or not to be")
  jobhost job result $ID
  jobhost job result $ID -O vowels.json`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			return e.jobResult(ctx, server, id, task, file)
		})
	cmd.Flags().IntVar(&task, "task", 0, "`INDEX` of the task whose result it is")
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "write to `FILE` instead of stdout")
	return cmd
}

func (e *env) jobResult(ctx context.Context, server jobhost.Server, id string, task int, file string) error {
	if task < 0 || task >= jobhost.MaxTasks {
		return usagef("--task %d is not between 0 and %d", task, jobhost.MaxTasks-1)
	}
	if file != "" && e.wantsJSON() {
		return usagef("-O writes the result as it is, not as JSON")
	}
	result, err := server.Result(ctx, id, task)
	switch {
	case err != nil:
		return err
	case file != "":
		if err := os.WriteFile(e.path(file), result.Data, 0o666); err != nil { //nolint:gosec // as the umask says, like any output of a command
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	case e.wantsJSON():
		return e.writeResult(&outcome{ID: id, Task: task, State: jobhost.Succeeded, data: result.Data}, asIs)
	}
	return e.writeData(id, task, result.Data, asIs)
}
