package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime/process/cgroup"
)

// command says what to start.
type command struct {
	path  string     // of the program
	args  []string   // with the name first
	env   []string   // complete, except for what the handshake adds
	dir   string     // working directory; empty = the host's
	files []*os.File // inherited, from descriptor 3 on
	sys   *syscall.SysProcAttr
	bound cgroup.Limits // together with everything it starts, where there are control groups
	// gentle means that it ends what it has started when it is asked to end.
	gentle bool
	// encrypted means that both sides authenticate with certificates, and encrypt the connection.
	encrypted bool
	// pipes means that frames are sent over pipes, which are its only files then.
	pipes bool
	// line is called with each line that it writes to its standard streams, cut at maxLine,
	// up to a rate. It must not block.
	line func(string)
}

// launched is a process. It implements [runner.Runner] in place of go-plugin's own, which considers a process alive as
// long as anything holds its standard output, reads lines of any length, and ignores its group.
type launched struct {
	engine  *engine
	cmd     *exec.Cmd
	bound   cgroup.Limits
	group   *cgroup.Group // nil = none
	line    func(string)
	gentle  bool
	until   context.Context // bounds the start: when it ends the process does, too
	started func() bool     // ends that bound: the start is over

	hello  *io.PipeReader // the first line of its output, for the handshake
	gone   chan struct{}  // closed when it has ended
	exited chan struct{}  // closed when, in addition, all its output was read
	err    error          // how it ended; set before exited is closed
	tail   tail           // of its output
}

var _ runner.Runner = (*launched)(nil)

// newLaunched prepares a process, which ends when until does, unless started was called before. env is what the
// handshake adds to the environment.
func newLaunched(until context.Context, e *engine, c *command, env []string) *launched {
	cmd := &exec.Cmd{
		Path: c.path, Args: c.args, Dir: c.dir, ExtraFiles: c.files,
		Env:         append(append([]string{}, c.env...), env...),
		SysProcAttr: c.sys,
	}
	return &launched{engine: e, cmd: cmd, bound: c.bound, line: c.line, gentle: c.gentle, until: until, gone: make(chan struct{}), exited: make(chan struct{})}
}

// Start implements [runner.Runner].
func (l *launched) Start(context.Context) error {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make a pipe: %w", err), outRead.Close(), outWrite.Close())
	}
	l.cmd.Stdout, l.cmd.Stderr = outWrite, errWrite
	err = l.start()
	_, _ = outWrite.Close(), errWrite.Close()
	if err != nil {
		_, _ = outRead.Close(), errRead.Close()
		return fmt.Errorf("start the process: %w", err)
	}
	hello, first := io.Pipe()
	l.hello = hello
	l.started = context.AfterFunc(l.until, func() { _ = l.Kill(context.Background()) })
	var readers sync.WaitGroup
	readers.Go(func() { l.readOutput(outRead, first) })
	readers.Go(func() { l.copyLines(bufio.NewReaderSize(errRead, maxLine)) })
	go func() {
		l.err = l.cmd.Wait()
		close(l.gone)
		_ = killGroup(l.cmd.Process.Pid) // what it has left behind
		l.leaveGroup()
		// Its last output is read to the end. But a process that has escaped from the group may hold the pipes open
		// indefinitely.
		patience := time.AfterFunc(gentleTime, func() { _, _ = outRead.Close(), errRead.Close() })
		readers.Wait()
		patience.Stop()
		_, _ = outRead.Close(), errRead.Close()
		close(l.exited)
	}()
	return nil
}

// start starts the process in a control group of its own, if possible. Where the kernel can't do that (before Linux
// 5.7, or because of a system call filter around the host) it starts without.
func (l *launched) start() (err error) {
	if l.group, err = l.engine.tree().New(l.bound); err != nil {
		l.engine.logger.Warn("process gets no control group", logkey.Path, l.cmd.Path, logkey.Error, err)
	}
	folder := l.group.Folder()
	if folder == nil {
		return l.engine.spawner.start(l.cmd)
	}
	plain := &exec.Cmd{ // a command can't be started twice
		Path: l.cmd.Path, Args: l.cmd.Args, Dir: l.cmd.Dir, ExtraFiles: l.cmd.ExtraFiles, Env: l.cmd.Env,
		SysProcAttr: l.cmd.SysProcAttr, Stdout: l.cmd.Stdout, Stderr: l.cmd.Stderr,
	}
	l.cmd.SysProcAttr = inGroup(l.cmd.SysProcAttr, folder)
	if err = l.engine.spawner.start(l.cmd); err == nil {
		return nil
	}
	l.leaveGroup()
	l.group = nil
	l.engine.logger.Warn("process starts outside of its control group", logkey.Path, l.cmd.Path, logkey.Error, err)
	l.cmd = plain
	return l.engine.spawner.start(l.cmd)
}

// leaveGroup kills what is left in the control group and removes it.
func (l *launched) leaveGroup() {
	if err := l.group.Close(); err != nil {
		l.engine.logger.Warn("control group is not closed", logkey.Error, err)
	}
}

// readOutput passes the first line to the handshake. The rest is treated like error output.
func (l *launched) readOutput(r io.Reader, first *io.PipeWriter) {
	lines := bufio.NewReaderSize(r, maxLine)
	line, err := lines.ReadSlice('\n')
	switch {
	case err != nil && len(line) == 0:
		// It has ended, or is about to. The handshake gets the error only after that, so that the cause is known.
		select {
		case <-l.gone:
		case <-time.After(gentleTime):
		}
	case err != nil:
		line = append(line, '\n') // too long or incomplete: not a greeting
	}
	_, _ = first.Write(line)
	_ = first.Close()
	l.copyLines(lines)
}

// Wait implements [runner.Runner].
func (l *launched) Wait(context.Context) error {
	<-l.exited
	return l.err
}

// Kill implements [runner.Runner]: it kills the process and its whole group at once.
func (l *launched) Kill(context.Context) error {
	if l.cmd.Process == nil {
		return nil
	}
	select {
	case <-l.exited: // its pid may have been reused
		return nil
	default:
	}
	if l.gentle && l.cmd.Process.Signal(syscall.SIGTERM) == nil {
		timer := time.NewTimer(gentleTime)
		defer timer.Stop()
		select {
		case <-l.exited:
			return nil
		case <-timer.C:
		}
	}
	return killGroup(l.cmd.Process.Pid)
}

// gentleTime is how long a guard may take to end what it guards.
const gentleTime = time.Second

// Stdout implements [runner.Runner].
func (l *launched) Stdout() io.ReadCloser { return l.hello }

// Stderr implements [runner.Runner]. The lines are read elsewhere.
func (l *launched) Stderr() io.ReadCloser { return io.NopCloser(eof{}) }

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Name implements [runner.Runner].
func (l *launched) Name() string { return l.cmd.Path }

// ID implements [runner.Runner].
func (l *launched) ID() string {
	if l.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(l.cmd.Process.Pid)
}

// Diagnose implements [runner.Runner].
func (l *launched) Diagnose(context.Context) string { return "" }

// PluginToHost implements [runner.Runner].
func (l *launched) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	if network != "unix" {
		return "", "", fmt.Errorf("it listens on %s instead of a unix socket", network)
	}
	return network, address, nil
}

// HostToPlugin implements [runner.Runner].
func (l *launched) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}

// end says how the process ended, which it must have.
func (l *launched) end() string {
	text := "exit status 0"
	if l.err != nil {
		text = l.err.Error()
	}
	if said := l.tail.String(); said != "" {
		text += "; it said: " + said
	}
	return text
}
