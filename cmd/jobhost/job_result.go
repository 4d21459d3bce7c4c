package main

import (
	"context"
	"fmt"
	"io"
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

func newJobPayloadCommand(e *env) *cobra.Command {
	file := ""
	cmd := e.oneJob("payload", "Write the payload of a job, byte for byte",
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
			return e.writeContent("the payload", "jobhost job payload "+id+" -O FILE", content, file)
		})
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "write to `FILE` instead of stdout")
	return cmd
}

func (e *env) jobResult(ctx context.Context, server jobhost.Server, id string, task int, file string) error {
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
		return e.writeResult(&outcome{ID: id, Task: task, State: jobhost.Succeeded, data: result.Data}, asIs)
	}
	return e.copyResult(ctx, server, id, task, file)
}

// copyResult writes a result of any size to a file, or else to stdout.
func (e *env) copyResult(ctx context.Context, server jobhost.Server, id string, task int, file string) error {
	content, err := server.OpenResult(ctx, id, task)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return e.writeContent("the result", resultHint(id, task), content, file)
}

// writeContent writes a content of any size to a file, or else to stdout. Only a
// terminal, which is shown nothing but text, must have it whole.
func (e *env) writeContent(what, hint string, content jobhost.Content, file string) error {
	switch {
	case file != "":
		return e.writeFile(what, content, file)
	case !e.stdout.terminal:
		_, err := io.Copy(e.stdout, content)
		return err
	case content.Size > jobhost.MaxWhole:
		return &jobhost.Error{
			Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("%s of %s is more than a terminal is for", what, size(int(content.Size))), Hint: hint,
		}
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return e.writeBytes(what, hint, data, asIs)
}

// writeFile writes a content to a file, which is removed again if it did not
// come to its end.
func (e *env) writeFile(what string, content io.Reader, file string) error {
	name := e.path(file)
	f, err := os.Create(name) // as the umask says, like any output of a command
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	_, err = io.Copy(f, content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		if info, statErr := os.Stat(name); statErr == nil && info.Mode().IsRegular() {
			_ = os.Remove(name)
		}
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
