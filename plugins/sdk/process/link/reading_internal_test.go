package link

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// programFunc is a program that runs tasks by a function.
type programFunc func(ctx context.Context, run *Run) *protocol.Result

func (f programFunc) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{}, nil
}
func (f programFunc) Release(uint32)                                     {}
func (f programFunc) Run(ctx context.Context, run *Run) *protocol.Result { return f(ctx, run) }

// hostEnd is the host's end of a program that is served over pipes.
type hostEnd struct {
	*testing.T
	*Pipes[*protocol.ToWorker, *protocol.ToHost]

	own     Ends
	sending sync.Mutex
	ended   chan error // how serving has ended
}

func serveOver(t *testing.T, p programFunc) *hostEnd {
	own, child, err := NewEnds()
	if err != nil {
		t.Fatal(err)
	}
	h := &hostEnd{T: t, Pipes: NewPipes[*protocol.ToWorker, *protocol.ToHost](own.Read, own.Write), own: own, ended: make(chan error, 1)}
	go func() {
		h.ended <- newServer(p).serveStream(fromHost{NewPipes[*protocol.ToHost, *protocol.ToWorker](child.Read, child.Write)}, child.Bell)
		_ = child.Close()
	}()
	t.Cleanup(func() { _ = own.Close() })
	return h
}

// send sends a batch. It may be called concurrently.
func (h *hostEnd) send(frames ...*protocol.HostFrame) {
	h.Helper()
	h.sending.Lock()
	defer h.sending.Unlock()
	if err := h.Send(&protocol.ToWorker{Frames: frames}); err != nil {
		h.Error(err)
	}
}

func (h *hostEnd) ring() {
	h.Helper()
	if _, err := h.own.Bell.Write([]byte{0}); err != nil {
		h.Error(err)
	}
}

// frames receives n frames.
func (h *hostEnd) frames(n int) (all []*protocol.WorkerFrame) {
	h.Helper()
	for len(all) < n {
		m := &protocol.ToHost{}
		if err := h.Receive(m); err != nil {
			h.Fatal(err)
		}
		all = append(all, m.GetFrames()...)
	}
	return all
}

func taskFrame(run uint64, alone bool, input string) *protocol.HostFrame {
	return &protocol.HostFrame{Run: run, Frame: &protocol.HostFrame_Task{Task: &protocol.Task{Alone: alone, Input: []byte(input)}}}
}

func outputOf(s string) *protocol.Result {
	return &protocol.Result{Outcome: &protocol.Result_Output{Output: []byte(s)}}
}

// TestAloneHearsOfCancel cancels a run on the reader's own goroutine, and stops another, once the host has rung.
func TestAloneHearsOfCancel(t *testing.T) {
	t.Parallel()
	h := serveOver(t, func(ctx context.Context, run *Run) *protocol.Result {
		<-run.Cancelled()
		if string(run.Task.GetInput()) == "stop" {
			<-ctx.Done()
		}
		return outputOf("cancelled")
	})
	h.send(taskFrame(1, true, ""))
	h.send(&protocol.HostFrame{Run: 1, Frame: &protocol.HostFrame_Cancel{Cancel: &protocol.Cancel{}}})
	h.ring()
	h.frames(1)
	h.send(taskFrame(2, true, "stop"))
	h.send(&protocol.HostFrame{Run: 2, Frame: &protocol.HostFrame_Cancel{Cancel: &protocol.Cancel{}}})
	h.ring()
	h.send(&protocol.HostFrame{Run: 2, Frame: &protocol.HostFrame_Stop{Stop: &protocol.Stop{}}}) // another goroutine reads by now
	h.frames(1)
}

// TestAloneHasCompany runs a second task beside one on the reader's own goroutine, once the host has rung, even if that
// was before the first was read.
func TestAloneHasCompany(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		both := make(chan struct{})
		began := make(chan struct{})
		h := serveOver(t, func(_ context.Context, run *Run) *protocol.Result {
			if run.id == 1 {
				close(began)
			} else {
				close(both)
			}
			<-both
			return outputOf("done")
		})
		if early {
			h.ring()
		}
		h.send(taskFrame(1, true, ""))
		<-began
		h.send(taskFrame(2, false, ""))
		if !early {
			h.ring()
		}
		h.frames(2)
	}
}

// TestAloneAsks has a run on the reader's own goroutine make a call: another one reads the answer, and what comes
// later.
func TestAloneAsks(t *testing.T) {
	t.Parallel()
	h := serveOver(t, func(_ context.Context, run *Run) *protocol.Result {
		var all []byte
		for range 3 {
			a, err := run.Call(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: "k"}}})
			if err != nil {
				return outputOf(err.Error())
			}
			all = append(all, a.GetData()...)
		}
		return outputOf(string(all))
	})
	for run := range uint64(3) {
		h.send(taskFrame(run+1, true, ""))
		for range 3 {
			c := h.frames(1)[0].GetCall()
			h.send(&protocol.HostFrame{Run: run + 1, Frame: &protocol.HostFrame_Answer{Answer: &protocol.Answer{Call: c.GetId(), Data: []byte("x")}}})
		}
		if got := string(h.frames(1)[0].GetResult().GetOutput()); got != "xxx" {
			t.Errorf("run %d: %s", run+1, got)
		}
	}
}

// TestAloneEndsWithHost ends the stream while the reader runs a task.
func TestAloneEndsWithHost(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	h := serveOver(t, func(ctx context.Context, _ *Run) *protocol.Result {
		close(began)
		<-ctx.Done()
		return outputOf(context.Cause(ctx).Error())
	})
	h.send(taskFrame(1, true, ""))
	<-began
	if err := errors.Join(h.own.Close(), <-h.ended); err != nil {
		t.Error(err)
	}
}

// TestHammerAlone sends lone tasks, with others in between that are rung for, some of which make calls: each has
// its result.
func TestHammerAlone(t *testing.T) {
	t.Parallel()
	h := serveOver(t, func(_ context.Context, run *Run) *protocol.Result {
		input := run.Task.GetInput()
		if len(input) > 0 && input[0] == 'a' {
			if _, err := run.Call(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{}}}); err != nil {
				return outputOf(err.Error())
			}
		}
		return outputOf(string(input))
	})
	inputs := []string{"", "a", "b", "a" + string(bytes.Repeat([]byte("x"), 100<<10))}
	var mu sync.Mutex // protects open
	open := map[uint64]string{}
	room := make(chan struct{}, 3)
	go func() {
		for run := range uint64(1500) {
			room <- struct{}{}
			input := inputs[rand.IntN(len(inputs))]
			mu.Lock()
			alone := len(open) == 0
			open[run] = input
			mu.Unlock()
			h.send(taskFrame(run, alone, input))
			if !alone {
				h.ring()
			}
			if rand.IntN(4) == 0 { // now and then all have ended before the next
				for range cap(room) - 1 {
					room <- struct{}{}
				}
				for range cap(room) - 1 {
					<-room
				}
			}
		}
	}()
	for ended := 0; ended < 1500; {
		for _, f := range h.frames(1) {
			if c := f.GetCall(); c != nil {
				go h.send(&protocol.HostFrame{Run: f.GetRun(), Frame: &protocol.HostFrame_Answer{Answer: &protocol.Answer{Call: c.GetId()}}})
				continue
			}
			mu.Lock()
			want := open[f.GetRun()]
			delete(open, f.GetRun())
			mu.Unlock()
			if got := string(f.GetResult().GetOutput()); got != want {
				t.Errorf("run %d: %.20q instead of %.20q", f.GetRun(), got, want)
			}
			ended++
			<-room
		}
	}
}

// TestAloneBesideLarge sends more than fits into a pipe beside a task on the reader's own goroutine: announced by the
// bell, it gets through.
func TestAloneBesideLarge(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	h := serveOver(t, func(_ context.Context, run *Run) *protocol.Result {
		if run.id == 1 {
			<-sent
		}
		return outputOf("done")
	})
	h.send(taskFrame(1, true, ""))
	h.ring()
	h.send(taskFrame(2, false, string(make([]byte, 3<<20))))
	close(sent)
	h.frames(2)
}

// TestAloneLeavesNothing has many lone tasks make calls, for each of which another goroutine starts to read. It isn't
// parallel, as it counts goroutines.
func TestAloneLeavesNothing(t *testing.T) {
	h := serveOver(t, func(_ context.Context, run *Run) *protocol.Result {
		if _, err := run.Call(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: "k"}}}); err != nil {
			return outputOf(err.Error())
		}
		return outputOf("done")
	})
	before := runtime.NumGoroutine()
	for run := range uint64(500) {
		h.send(taskFrame(run+1, true, ""))
		c := h.frames(1)[0].GetCall()
		h.send(&protocol.HostFrame{Run: run + 1, Frame: &protocol.HostFrame_Answer{Answer: &protocol.Answer{Call: c.GetId()}}})
		h.frames(1)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("there were %d goroutines, and %d after 500 tasks", before, after)
	}
}
