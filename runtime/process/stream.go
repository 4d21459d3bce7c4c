package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// stream is what carries frames: pipes, or a gRPC stream.
type stream interface {
	Send(m *protocol.ToWorker) error
	Recv() (*protocol.ToHost, error)
}

// toWorker adapts pipes to a stream.
type toWorker struct {
	*link.Pipes[*protocol.ToWorker, *protocol.ToHost]
}

// Recv implements stream.
func (t *toWorker) Recv() (*protocol.ToHost, error) {
	m := &protocol.ToHost{}
	return m, t.Receive(m)
}

// pipe makes the pipes for a process to be started, and returns the ends to be inherited.
func (c *child) pipe() (theirs link.Ends, err error) {
	own, theirs, err := link.NewEnds()
	if err != nil {
		return theirs, err
	}
	c.bell = own.Bell
	c.pipes = &toWorker{link.NewPipes[*protocol.ToWorker, *protocol.ToHost](own.Read, own.Write)}
	return theirs, nil
}

// open opens the stream.
func (c *child) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	var stream stream
	if c.pipes != nil {
		stream = c.pipes
		context.AfterFunc(ctx, func() { _, _ = c.pipes.Close(), c.bell.Close() })
	} else {
		over, err := c.worker.Run(ctx)
		if err != nil {
			cancel()
			return fmt.Errorf("open the stream: %w", err)
		}
		stream = over
	}
	c.endRun = cancel
	c.out = link.NewSender(func(frames []*protocol.HostFrame) error {
		c.ring(frames)
		return stream.Send(&protocol.ToWorker{Frames: frames})
	}, func(of *protocol.HostFrame, data []byte, last bool) *protocol.HostFrame {
		return &protocol.HostFrame{Run: of.GetRun(), Frame: &protocol.HostFrame_Piece{Piece: &protocol.Piece{Data: data, Last: last}}}
	}, func() bool { return c.reading.due.Load() > 1 })
	go func() {
		err := c.receive(ctx, stream)
		cancel()
		c.out.Close(errEnded)
		c.end(err)
	}()
	return nil
}

// errEnded is for frames after the end of the stream.
var errEnded = errors.New("the stream has ended")

// receive handles what the process sends, until the stream ends.
func (c *child) receive(ctx context.Context, stream stream) error {
	for {
		batch, err := c.next(ctx, stream)
		if err != nil {
			return err
		}
		light := c.pipes != nil && c.pipes.Size() <= lightFrame
		for _, f := range batch.GetFrames() {
			c.mu.Lock()
			r := c.runs[f.GetRun()]
			c.mu.Unlock()
			if r == nil {
				continue // it has ended
			}
			if err := r.take(f, light); err != nil {
				return err
			}
		}
	}
}
