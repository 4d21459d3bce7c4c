package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newWorkflowResultCommand(e workflowEnv) *cobra.Command {
	file := ""
	cmd := e.one("result", "Write the output of a workflow, byte for byte", "", func(ctx context.Context, server jobhost.Server, id string) error {
		content, err := server.OpenWorkflowOutput(ctx, id)
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }()
		if e.wantsJSON() {
			return usagef("an output is written as it is, not as JSON")
		}
		return resultWriter(e).content("the output", "jobhost workflow result "+id+" -O FILE", content, file)
	})
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "write to `FILE` instead of stdout")
	return cmd
}
