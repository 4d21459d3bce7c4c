// Command jobhost runs a job server whose workers are sandboxed WebAssembly
// plugins, and is the client of one: it submits jobs, waits for them, and
// tells and changes what is known of them.
//
// Each command stands in a file of its own name. What they share: [env] is
// all they see of the process, connect.go finds the server, table.go and
// escape.go write what people read. Nothing that came from a server, a worker
// or a file reaches a terminal without being escaped.
package main

import (
	"context"
	"io"
	"os"
	"strings"
	_ "time/tzdata" // schedules have time zones, and images often have none

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the operation failed, or a job that was waited for did
	exitUsage  = 2 // the command line can never work
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run executes one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newEnv(stdin, stdout, stderr).run(context.Background(), args)
}

// run executes one command line within e.
func (e *env) run(ctx context.Context, args []string) int {
	e.began = false
	root := newRootCommand(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		err = e.stdout.failure()
	case !e.began:
		err = asUsage(err)
	}
	return e.exit(cmd, err)
}

// newRootCommand puts the commands together.
func newRootCommand(e *env) *cobra.Command {
	root := newGroup("jobhost", "Run jobs in sandboxed WebAssembly workers")
	root.Long = `Run jobs in sandboxed WebAssembly workers.

jobhost run is the server; the other commands ask one over HTTP, by default the
one at ` + defaultAddr + `. Where to ask and how to show the answer comes from
flags, else from JOBHOST_* variables, else from the manifest.

Exit codes: 0 done, 1 failed (a job that was waited for, too), 2 wrong usage.`
	root.Example = `  jobhost run
  jobhost submit wordcount "to be or not to be" --wait
  jobhost job ls`
	add := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add("host", "Run workers:", newRunCommand(e), newDevCommand(e), newExecCommand(e), newBenchCommand(e), newManifestCommand(e), newHostCommand(hostEnv{e}))
	add("jobs", "Jobs of a running host:", newSubmitCommand(submitEnv{e}), newJobCommand(jobEnv{e}), newDeadCommand(deadEnv{e}),
		newWorkerCommand(workerEnv{e}), newScheduleCommand(scheduleEnv{e}), newKVCommand(kvEnv{e}), newStateCommand(stateEnv{e}),
		newFiberCommand(fiberEnv{e}), newWorkflowCommand(workflowEnv{e}))
	store := storeEnv{e}
	add("store", "The store:", newBackupCommand(store), newRestoreCommand(store), newRepairCommand(store), newMigrateCommand(e))
	root.AddCommand(newVersionCommand(e), newSandboxCommand(), newGuardCommand())
	e.options.register(root)
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	// Groups can be run, to print their help; that is no usage to speak of.
	root.SetUsageTemplate(strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
		"{{.CommandPath}} [command]", "{{.CommandPath}} COMMAND",
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}", "Global flags, such as --addr, --manifest and --output: jobhost --help",
	).Replace(root.UsageTemplate()))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	e.settle(root)
	return root
}

// settle gives all commands what they have in common.
func (e *env) settle(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = cmd.HasSubCommands()
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "." // help begins with a sentence
	}
	if cmd.HasSubCommands() && !cmd.Runnable() { // cobra's own
		asGroup(cmd)
	}
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			e.began = true
			return do(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		e.settle(child)
	}
}
