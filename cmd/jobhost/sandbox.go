package main

import (
	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/runtime/process"
)

// sandboxCommand is the name of the command that is a sandbox process.
const sandboxCommand = "sandbox"

// newSandboxCommand is what the host starts to run workers in processes of their own. It is of no use to people.
func newSandboxCommand() *cobra.Command {
	return &cobra.Command{
		Use: sandboxCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			process.ServeSandbox(openWasm)
			return nil
		},
	}
}
