package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jobhost/jobhost/runtime/process/confine"
)

// guardArgs are the arguments of a guard.
type guardArgs struct {
	Memory int64  // bytes that the plugin may write to
	Name   string // of the plugin
	Args   []string
}

func (g *guardArgs) encode() []string {
	return append([]string{strconv.FormatInt(g.Memory, 10), g.Name}, g.Args...)
}

func parseGuardArgs(args []string) (*guardArgs, error) {
	if len(args) < 2 {
		return nil, errors.New("guard: memory, name and arguments of a plugin are expected")
	}
	memory, err := strconv.ParseInt(args[0], 10, 64)
	return &guardArgs{Memory: memory, Name: args[1], Args: args[2:]}, err
}

// maxOpenFiles is how many files a plugin may have open.
const maxOpenFiles = 1024

// What a plugin may have in its control group, together with everything it starts.
const (
	guardBytes   = 64 << 20 // for the guard, besides the plugin's memory
	maxProcesses = 4096     // each thread counts
)

// ServeGuard is the program between the host and a native plugin: it sets limits that the plugin can't lift, starts
// the program given as descriptor 3, and kills everything that was started, in any group, when the plugin ends, when
// it is asked to, or when the host is gone. It returns the exit code.
func ServeGuard(args []string) int {
	if len(args) == 0 {
		// The host checks whether it can start a guard like this.
		if err := hideOthers(); err != nil {
			return 1
		}
		return 0
	}
	g, err := parseGuardArgs(args)
	if err == nil {
		err = becomeReaper()
	}
	if err == nil {
		err = hideOthers()
	}
	if err == nil {
		_, err = confine.Apply(confine.Config{
			Limits: confine.Limits{Data: g.Memory, OpenFiles: maxOpenFiles},
			Calls:  confine.ProgramCalls, EndFirst: true,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		return 1
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // from a terminal, which the host handles
	program := os.NewFile(3, g.Name)
	cmd := &exec.Cmd{
		Path: programPath(), Args: append([]string{g.Name}, g.Args...), ExtraFiles: []*os.File{program},
		Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: guardedAttributes(),
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "start %s: %v\n", g.Name, explainStart(err))
		return 126
	}
	_ = program.Close()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}()
	select {
	case <-ended:
	case <-ends:
		_ = cmd.Process.Kill()
		<-ended
	}
	reap()
	return exitCode(cmd.ProcessState)
}

// explainStart adds the usual cause.
func explainStart(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: it is neither a program for this machine nor a script with a #! line", err)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: the interpreter that its #! line names is not there", err)
	}
	return err
}

// exitCode is that of the plugin, as a shell reports it.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}
