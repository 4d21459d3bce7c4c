// Package exec runs child processes whose exit and shutdown are ops. A process
// belongs to a scope: when the scope is cancelled, the process is asked to end and
// killed after its grace period; the join of the scope waits for it. Descendants of
// the process are not its concern.
//
//	Start ──► runs ──Shutdown, or end of the scope──► asked ──grace──► killed
//	            └────────────────┴───────────────────────┴──► exited
package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

// Command describes the process to start.
type Command struct {
	// Path is a file, or a name that is looked up in PATH.
	Path string
	Args []string // without the name of the command
	Dir  string   // empty = that of this process
	Env  []string // NAME=value; nil = those of this process

	// Stdin is what the process reads; nil = nothing. It is closed when the process
	// has exited.
	Stdin *stream.Pipe
	// Stdout and Stderr get the output of the process, and are closed after it; nil =
	// it is dropped. They may be the same pipe. An unread pipe blocks the process,
	// and the join of the scope until the scope is cancelled; closing a pipe is
	// visible to the process.
	Stdout, Stderr *stream.Pipe

	// Grace is the time between asking the process to end and killing it when the
	// scope is cancelled; 0 = it is killed at once.
	Grace time.Duration
}

// Process is a child process. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	exit op.Future[*os.ProcessState]

	links     []*link
	copying   op.WaitGroup // of the links
	abandoned op.Signal    // the links are no longer waited for

	mu       sync.Mutex // protects the fields below
	ended    bool
	asked    bool
	killer   *time.Timer // nil = no kill is pending
	deadline time.Time   // when killer fires
}

// Start starts a process in a scope. The error wraps a [*scope.AdmissionError] if the
// scope accepts no more goroutines; otherwise it says why the command can't be
// started. On an error the pipes are closed.
func Start(s *scope.Scope, c Command) (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...)} //nolint:gosec,noctx // what the caller wants; the scope ends it
	p.cmd.Dir, p.cmd.Env = c.Dir, c.Env
	err := p.connect(&c)
	if err == nil {
		err = p.cmd.Start()
	}
	for _, l := range p.links {
		_ = l.theirs.Close()
	}
	if err == nil {
		p.copying.Add(len(p.links))
		err = s.Go("process "+c.Path, func(ctx context.Context) error { p.supervise(ctx, c.Grace); return nil })
		if err != nil {
			p.Kill()
			_ = p.cmd.Wait()
		}
	}
	if err != nil {
		for _, l := range p.links {
			l.close(err)
		}
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	for _, l := range p.links {
		p.copyIn(s, l)
	}
	return p, nil
}

// supervise waits for the process and its streams to end.
func (p *Process) supervise(ctx context.Context, grace time.Duration) {
	stop := context.AfterFunc(ctx, func() { p.shutdown(grace) })
	err := p.cmd.Wait()
	stop()
	p.mu.Lock()
	p.ended = true
	if p.killer != nil {
		p.killer.Stop()
	}
	p.mu.Unlock()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = nil // its state has the exit status
	}
	p.exit.Set(p.cmd.ProcessState, err)
	p.drain(ctx)
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exit returns an op that is ready when the process has exited, and results in its
// state; a failed process is not an error. Its last output may still be in transit
// through its streams.
func (p *Process) Exit() op.Op[*os.ProcessState] { return p.exit.Get() }

// Shutdown returns an op that asks the process to end, kills it if it hasn't after a
// grace period, and is ready when it has exited. Performing it starts the shutdown
// whichever arm wins, and it continues if the op loses. Of several grace periods the
// one that ends first counts; 0 = kill at once. The process is also killed where
// processes can't be asked.
func (p *Process) Shutdown(grace time.Duration) op.Op[*os.ProcessState] {
	return op.Guard(func() op.Op[*os.ProcessState] {
		p.shutdown(grace)
		return p.Exit()
	})
}

func (p *Process) shutdown(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if grace > 0 && !p.asked {
		p.asked = true
		if ask(p.cmd.Process) != nil {
			grace = 0
		}
	}
	if grace <= 0 {
		p.Kill()
		return
	}
	deadline := time.Now().Add(grace)
	switch {
	case p.killer == nil:
		p.killer = time.AfterFunc(grace, p.Kill)
	case deadline.Before(p.deadline):
		p.killer.Reset(grace)
	default:
		return
	}
	p.deadline = deadline
}

// Kill kills the process. It does nothing if the process has exited.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
