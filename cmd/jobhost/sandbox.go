package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// newSandboxCommand is what the host starts to run workers in a process of their own. It is of no use to people.
func newSandboxCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sandbox", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			process.ServeSandbox(func(cache string, logger *slog.Logger) (runtime.Engine, error) {
				return wasm.New(wasm.Config{CacheDir: cache, Logger: logger})
			})
			return nil
		},
	}
}
