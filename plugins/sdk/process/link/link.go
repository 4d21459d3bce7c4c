// Package link is the worker's end of the stream between jobhost and a process: it serves a [Program], runs each task
// on a goroutine of its own, or on the one that has read it, batches frames to the host, and passes answers to their
// callers. Package process is an SDK based on it, and jobhost's own sandboxes use it directly.
package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// Protocol is the version of the protocol that this package speaks.
const Protocol = 1

// Program is the work of a process.
type Program interface {
	// Describe says what it can do. It is called once, before Run.
	Describe(ctx context.Context, r *protocol.DescribeRequest) (*protocol.DescribeResponse, error)
	// Run runs a task to its end. ctx ends when the host says that it must end now, and with
	// the stream. It is called concurrently.
	Run(ctx context.Context, run *Run) *protocol.Result
	// Release says that no further run will use a slot.
	Release(slot uint32)
}

// stream is what carries tasks: a gRPC stream, or [Pipes].
type stream interface {
	Send(m *protocol.ToHost) error
	Recv() (*protocol.ToWorker, error)
}

// server serves a program over one stream.
type server struct {
	protocol.UnimplementedWorkerServer

	program Program
	idle    chan *Run     // to idle goroutines; nil = read
	ended   chan struct{} // closed when the stream has ended
	reading *reading      // of the stream

	mu   sync.Mutex // protects the rest
	runs map[uint64]*Run
	busy sync.WaitGroup // of runs
	used bool           // there has been a stream
}

func newServer(p Program) *server {
	return &server{program: p, idle: make(chan *Run), ended: make(chan struct{}), runs: map[uint64]*Run{}}
}

// Describe implements [protocol.WorkerServer].
func (s *server) Describe(ctx context.Context, r *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	if r.GetProtocol() != Protocol {
		return nil, status.Errorf(codes.FailedPrecondition,
			"this worker speaks version %d of the protocol, and jobhost %s speaks version %d", Protocol, r.GetHost(), r.GetProtocol())
	}
	return s.program.Describe(ctx, r)
}

// Drain implements [protocol.WorkerServer].
func (s *server) Drain(ctx context.Context, _ *protocol.DrainRequest) (*protocol.DrainResponse, error) {
	done := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
		return &protocol.DrainResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run implements [protocol.WorkerServer].
func (s *server) Run(stream grpc.BidiStreamingServer[protocol.ToWorker, protocol.ToHost]) error {
	return s.serveStream(stream, nil)
}

// serveStream runs the tasks that arrive over a stream until that ends. A server serves only one stream. bell signals
// that frames must be read; nil = they are always read.
func (s *server) serveStream(stream stream, bell io.Reader) error {
	s.mu.Lock()
	if s.used {
		s.mu.Unlock()
		return status.Error(codes.FailedPrecondition, "there is one stream for all tasks, and it is open already")
	}
	s.used = true
	s.mu.Unlock()
	defer close(s.ended)
	out := NewSender(func(frames []*protocol.WorkerFrame) error {
		return stream.Send(&protocol.ToHost{Frames: frames})
	}, func(of *protocol.WorkerFrame, data []byte, last bool) *protocol.WorkerFrame {
		return &protocol.WorkerFrame{Run: of.GetRun(), Frame: &protocol.WorkerFrame_Piece{Piece: &protocol.Piece{Data: data, Last: last}}}
	}, s.crowded)
	s.reading = newReading(s, stream, out)
	go s.serve(nil)
	if bell != nil {
		go s.reading.listen(bell)
	}
	err := <-s.reading.ended
	out.Close(errEnded)
	s.mu.Lock()
	for _, r := range s.runs {
		r.abandon()
	}
	s.mu.Unlock()
	s.busy.Wait()
	return err
}

var errEnded = errors.New("the host has ended the stream")

// take handles a frame. Frames for a run that has ended are ignored.
func (s *server) take(f *protocol.HostFrame, out *Sender[*protocol.WorkerFrame]) error {
	s.mu.Lock()
	r := s.runs[f.GetRun()]
	s.mu.Unlock()
	switch frame := f.GetFrame().(type) {
	case *protocol.HostFrame_Task:
		if r != nil {
			return status.Errorf(codes.InvalidArgument, "run %d is under way already", f.GetRun())
		}
		s.begin(f.GetRun(), frame.Task, out)
	case *protocol.HostFrame_Answer:
		if r != nil {
			r.answer(frame.Answer)
		}
	case *protocol.HostFrame_Cancel:
		if r != nil {
			r.cancel()
		}
	case *protocol.HostFrame_Stop:
		if r != nil {
			r.stop(ErrStopped)
		}
	case *protocol.HostFrame_Release:
		s.program.Release(frame.Release.GetSlot())
	case *protocol.HostFrame_Piece:
		if r == nil {
			return nil
		}
		var whole protocol.HostFrame
		ok, err := r.pieces.Add(frame.Piece, &whole)
		switch {
		case err != nil:
			return fmt.Errorf("put a frame together: %w", err)
		case ok:
			whole.Run = f.GetRun()
			return s.take(&whole, out)
		}
	}
	return nil
}

// begin runs a task on a goroutine of its own.
func (s *server) begin(id uint64, task *protocol.Task, out *Sender[*protocol.WorkerFrame]) {
	s.employ(s.add(newRun(id, task, out)))
}

// employ has a goroutine run a task, or read: an idle one, or a new one.
func (s *server) employ(r *Run) {
	select {
	case s.idle <- r:
	default:
		go s.serve(r)
	}
}

// add adds a run to those in progress.
func (s *server) add(r *Run) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r.id] = r
	s.busy.Add(1)
	return r
}

// quiet reports whether nothing is in progress, and crowded whether several runs are.
func (s *server) quiet() bool   { return s.underWay() == 0 }
func (s *server) crowded() bool { return s.underWay() > 1 }

func (s *server) underWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// serve runs a task or reads, and then does so again until the stream ends: a goroutine that has run a task already has
// the stack for the next.
func (s *server) serve(r *Run) {
	for {
		if r != nil {
			s.run(r)
		} else {
			s.reading.read()
		}
		select {
		case r = <-s.idle:
		case <-s.ended:
			return
		}
	}
}

// run runs a task and reports how it ended.
func (s *server) run(r *Run) {
	defer s.busy.Done()
	result := s.program.Run(r.ctx, r)
	s.mu.Lock()
	delete(s.runs, r.id)
	s.mu.Unlock()
	r.stop(nil)
	clean(result, r.Task)
	r.pour(result)
	// An error means that the stream has ended, and with it the receiver.
	_ = r.out.Send(&protocol.WorkerFrame{Run: r.id, Frame: &protocol.WorkerFrame_Result{Result: result}}, proto.Size(result)+frameBytes)
}

// frameBytes is more than a frame costs besides its content.
const frameBytes = 32
