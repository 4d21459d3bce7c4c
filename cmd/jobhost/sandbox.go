package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/runtime/process"
)

// sandboxCommand is the name of the command that is a sandbox process.
const sandboxCommand = "sandbox"

// guardCommand is the name of the command that guards a native plugin.
const guardCommand = "guard"

// newGuardCommand is what the host starts native plugins with. It is of no use to people.
func newGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use: guardCommand, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			os.Exit(process.ServeGuard(args)) // as the plugin has ended
			return nil
		},
	}
}

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
