package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// chunk is how much is read or written at a time.
const chunk = 32 << 10

// From returns a pipe of size bytes that a goroutine of s fills from r. The pipe ends
// when r does. r is closed at its end, when the pipe is closed, and when the scope is
// cancelled, which ends the pipe with the cause. Closing r must end a read in
// progress, as it does for files, pipes and connections.
func From(s *scope.Scope, r io.ReadCloser, size int) (*Pipe, error) {
	p := NewPipe(size)
	p.onClose = func() { _ = r.Close() }
	err := s.Go("read stream", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = p.CloseWithError(context.Cause(ctx)) })()
		_ = p.CloseWithError(p.fill(r))
		return nil // errors are for the readers
	})
	if err != nil {
		return nil, fmt.Errorf("read stream: %w", err)
	}
	return p, nil
}

// fill copies r into the pipe and returns why it stopped; nil = at the end of r.
func (p *Pipe) fill(r io.Reader) error {
	b := make([]byte, min(chunk, p.size))
	for {
		n, err := r.Read(b)
		if _, err := p.Write(b[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// To returns a pipe of size bytes that a goroutine of s empties into w. w is closed
// when the pipe is closed and empty, at the first error, which later writes get too,
// and when the scope is cancelled. Closing w must end a write in progress.
func To(s *scope.Scope, w io.WriteCloser, size int) (*Pipe, error) {
	p := NewPipe(size)
	shut := sync.OnceFunc(func() { _ = w.Close() })
	err := s.Go("write stream", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() {
			_ = p.CloseWithError(context.Cause(ctx))
			shut()
		})()
		_ = p.CloseWithError(p.empty(w))
		shut()
		return nil // errors are for the writers
	})
	if err != nil {
		return nil, fmt.Errorf("write stream: %w", err)
	}
	return p, nil
}

// empty copies the pipe into w and returns why it stopped; nil = at the end of the
// pipe.
func (p *Pipe) empty(w io.Writer) error {
	for {
		data, err := op.PerformRaw(p.ReadOp(chunk))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return err
		}
	}
}
