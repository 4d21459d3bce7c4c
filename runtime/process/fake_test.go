package process

import (
	"context"
	"log/slog"
	"os/exec"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// fake is a process that is a part of the test.
type fake struct {
	*child

	ctx context.Context // ends with the test

	mu    sync.Mutex // protects heard
	heard []*protocol.HostFrame
	news  chan struct{} // has a value when more was heard
}

// newFake returns a process that listens.
func newFake(t testing.TB) *fake {
	f := &fake{ctx: t.Context(), news: make(chan struct{}, 1)}
	f.child = fakeChild(t, func(frames []*protocol.HostFrame) error {
		f.mu.Lock()
		f.heard = append(f.heard, frames...)
		f.mu.Unlock()
		select {
		case f.news <- struct{}{}:
		default:
		}
		return nil
	})
	return f
}

// fakeChild returns the host's side of a process to which send sends.
func fakeChild(t testing.TB, send func([]*protocol.HostFrame) error) *child {
	t.Helper()
	c := newChild()
	c.client = plugin.NewClient(&plugin.ClientConfig{Logger: hclog.NewNullLogger()})
	c.process = &launched{cmd: &exec.Cmd{}, exited: make(chan struct{})}
	c.out = link.NewSender(send, func(of *protocol.HostFrame, data []byte, last bool) *protocol.HostFrame {
		return &protocol.HostFrame{Run: of.GetRun(), Frame: &protocol.HostFrame_Piece{Piece: &protocol.Piece{Data: data, Last: last}}}
	}, func() bool { return true })
	t.Cleanup(c.die)
	return c
}

// hear waits for a wanted frame, discarding those before it.
func (f *fake) hear(t testing.TB, want func(*protocol.HostFrame) bool) *protocol.HostFrame {
	t.Helper()
	for {
		f.mu.Lock()
		for len(f.heard) > 0 {
			frame := f.heard[0]
			f.heard = f.heard[1:]
			if want(frame) {
				f.mu.Unlock()
				return frame
			}
		}
		f.mu.Unlock()
		select {
		case <-f.news:
		case <-f.ctx.Done():
			t.Fatal("what was to be heard was not said")
		}
	}
}

// answer waits for the answer to a call.
func (f *fake) answer(t testing.TB, call uint32) *protocol.Answer {
	t.Helper()
	return f.hear(t, func(h *protocol.HostFrame) bool { return h.GetAnswer().GetCall() == call && call != 0 }).GetAnswer()
}

// start begins a run, and returns it with a function that waits for its end.
func (f *fake) start(ctx context.Context, t testing.TB, at *hostcall.Attempt) (*run, func() (*protocol.Result, ending)) {
	t.Helper()
	r := newRun(at, stoppedTimer())
	if !f.begin(r) {
		t.Fatal("the process is dead")
	}
	var result *protocol.Result
	var why ending
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, why = r.do(ctx, taskOf(at))
		f.finish(r)
		close(r.gone)
		at.Release()
	}()
	return r, func() (*protocol.Result, ending) {
		t.Helper()
		<-ended
		return result, why
	}
}

// call makes a frame of a call.
func call(id uint32, c *protocol.Call) *protocol.WorkerFrame {
	c.Id = id
	return &protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Call{Call: c}}
}

// say passes a frame to a run.
func say(t testing.TB, r *run, f *protocol.WorkerFrame) {
	t.Helper()
	if err := r.take(f, false); err != nil {
		t.Error(err)
	}
}

// resultFrame is an empty result.
func resultFrame() *protocol.WorkerFrame {
	return &protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Result{Result: &protocol.Result{}}}
}

// wantText fails unless the error text of an answer is valid UTF-8.
func wantText(t testing.TB, a *protocol.Answer) {
	t.Helper()
	for _, text := range []string{a.GetError(), a.GetCode(), a.GetField()} {
		if !utf8.ValidString(text) {
			t.Errorf("%q is no text", text)
		}
	}
}

func isDead(c *child) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// healthy is a process that reports that it is alive.
type healthy struct{ healthpb.HealthClient }

// Check implements [healthpb.HealthClient].
func (healthy) Check(context.Context, *healthpb.HealthCheckRequest, ...grpc.CallOption) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
