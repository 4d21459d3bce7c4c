package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

const (
	// chunk is how much is copied at a time.
	chunk = 32 << 10
	// orphanTime is how long the output of a process is read after its exit: its
	// descendants may hold the other end open indefinitely.
	orphanTime = time.Second
)

var errAbandoned = errors.New("the process has exited, and its scope has ended")

// link connects a stream of a process to a pipe.
type link struct {
	pipe         *stream.Pipe
	ours, theirs *os.File
	copy         func(*Process, *link) error
}

// connect creates the links that a command asks for. They are in p.links, even if it
// fails.
func (p *Process) connect(c *Command) error {
	if c.Stdin != nil {
		l, err := p.link(c.Stdin, (*Process).copyInput)
		if err != nil {
			return err
		}
		l.ours, l.theirs = l.theirs, l.ours
		p.cmd.Stdin = l.theirs
	}
	if c.Stdout != nil {
		l, err := p.link(c.Stdout, (*Process).copyOutput)
		if err != nil {
			return err
		}
		p.cmd.Stdout = l.theirs
	}
	if c.Stderr != nil && c.Stderr == c.Stdout {
		p.cmd.Stderr = p.cmd.Stdout
	} else if c.Stderr != nil {
		l, err := p.link(c.Stderr, (*Process).copyOutput)
		if err != nil {
			return err
		}
		p.cmd.Stderr = l.theirs
	}
	return nil
}

// link creates a link whose reading end is ours.
func (p *Process) link(pipe *stream.Pipe, copyFunc func(*Process, *link) error) (*link, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	l := &link{pipe: pipe, ours: r, theirs: w, copy: copyFunc}
	p.links = append(p.links, l)
	return l, nil
}

func (l *link) close(reason error) {
	_ = l.ours.Close()
	_ = l.pipe.CloseWithError(reason)
}

// copyIn copies data through a link, in a goroutine of s.
func (p *Process) copyIn(s *scope.Scope, l *link) {
	err := s.Go("stream of process", func(context.Context) error {
		defer p.copying.Done()
		l.close(l.copy(p, l))
		return nil // errors are for the users of the pipe
	})
	if err != nil { // s was cancelled after the process started, which ends the process
		l.close(err)
		p.copying.Done()
	}
}

// copyOutput copies the output of the process. It returns nil at its end.
func (p *Process) copyOutput(l *link) error {
	b := make([]byte, chunk)
	gone := op.Wrap(p.abandoned.Wait(), func(struct{}) (int, error) { return 0, errAbandoned })
	for {
		n, err := l.ours.Read(b)
		if n > 0 {
			// What fits into the pipe stays readable, even if the process and its scope have ended.
			write := l.pipe.WriteOp(b[:n])
			_, written, err := op.TryPerform(write)
			if !written {
				_, err = op.PerformRaw(op.Choice(write, gone))
			}
			if err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
}

// copyInput copies the input of the process until it has exited.
func (p *Process) copyInput(l *link) error {
	exited := op.WrapResult(p.exit.Get(), func(*os.ProcessState, error) ([]byte, error) { return nil, io.EOF })
	for {
		data, err := op.PerformRaw(op.Choice(l.pipe.ReadOp(chunk), exited))
		if err == nil {
			_, err = l.ours.Write(data)
		}
		if err != nil {
			return nil //nolint:nilerr // writers see that the pipe is closed
		}
	}
}

// drain waits for the streams of a process that has exited.
func (p *Process) drain(ctx context.Context) {
	for _, l := range p.links {
		// Errors are from ends that are already closed.
		_ = l.ours.SetWriteDeadline(time.Now())
		_ = l.ours.SetReadDeadline(time.Now().Add(orphanTime))
	}
	if _, err := op.PerformRaw(op.Choice(p.copying.Wait(), op.Done[struct{}](ctx))); err != nil {
		p.abandoned.Fire()
	}
}
