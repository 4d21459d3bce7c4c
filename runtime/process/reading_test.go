package process

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// TestResultAfterThatOfAnother has a run begin while another, which was alone, polls for its own result. The result of
// the second comes after the first has ended: it must still be read.
func TestResultAfterThatOfAnother(t *testing.T) {
	t.Parallel()
	c := newChild()
	c.looking = &atomic.Bool{}
	c.process = &launched{exited: make(chan struct{}), gone: make(chan struct{})}
	theirs, err := c.pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	aloneBegan, aloneEnded := make(chan struct{}, 1), make(chan struct{}, 1)
	go worker(link.NewPipes[*protocol.ToHost, *protocol.ToWorker](theirs.Read, theirs.Write), aloneBegan, aloneEnded)
	run := func(r *run) {
		if _, why := r.do(context.Background(), taskOf(r.at)); why != byResult {
			t.Errorf("it ended by %v", why)
		}
		c.finish(r)
		close(r.gone)
	}
	for range 300 {
		c.reading.brief.Store(true)
		alone, other := newRun(networked(), stoppedTimer()), newRun(networked(), stoppedTimer())
		c.begin(alone)
		c.begin(other)
		both := make(chan struct{})
		go func() {
			<-aloneBegan
			run(other)
			close(both)
		}()
		run(alone)
		aloneEnded <- struct{}{}
		<-both
	}
	c.endRun()
	close(c.process.exited)
	<-c.life.Done()
	_ = theirs.Close()
}

// worker answers a lone task when another has come, and that one when the first has ended.
func worker(p *link.Pipes[*protocol.ToHost, *protocol.ToWorker], began chan<- struct{}, ended <-chan struct{}) {
	answer := func(run uint64) {
		_ = p.Send(&protocol.ToHost{Frames: []*protocol.WorkerFrame{{Run: run, Frame: resultFrame().GetFrame()}}})
	}
	var alone uint64
	for {
		m := &protocol.ToWorker{}
		if p.Receive(m) != nil {
			return
		}
		for _, f := range m.GetFrames() {
			switch {
			case f.GetTask().GetAlone():
				alone = f.GetRun()
				began <- struct{}{}
			case f.GetTask() != nil:
				answer(alone)
				<-ended
				answer(f.GetRun())
			}
		}
	}
}

// TestLightFramesAreNotHeld has a process send frames that are light on arrival but would not be if encoded again:
// negative handles in five bytes each instead of ten. That must not reduce what counts as held.
func TestLightFramesAreNotHeld(t *testing.T) {
	t.Parallel()
	var handles []byte
	for range 12000 {
		handles = protowire.AppendVarint(handles, 1<<32-1)
	}
	wait := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), handles)
	f := call(1, &protocol.Call{Call: &protocol.Call_Wait{Wait: &protocol.Wait{}}})
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(wait, f.GetCall().GetWait()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.GetCall().GetWait().GetHandles()); n != 12000 || len(wait) > lightFrame || proto.Size(f) <= lightFrame {
		t.Fatalf("%d handles, %d bytes, %d again", n, len(wait), proto.Size(f))
	}
	child := newFake(t)
	r := newRun(networked(), stoppedTimer())
	child.begin(r)
	if err := r.take(f, true); err != nil {
		t.Fatal(err)
	}
	if r.took(<-r.frames); child.held != 0 {
		t.Errorf("%d bytes are held", child.held)
	}
}
