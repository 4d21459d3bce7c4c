package process

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// reading is the right to read the pipes of a process, which one goroutine has at a time: that of the stream, as long
// as results are expected. Otherwise it gives the right up. Then the goroutine of an attempt that is alone in the
// process may take it, and poll for its result without sleeping: waking a thread takes longer than most tasks do.
type reading struct {
	due    atomic.Int64  // runs whose result is still expected
	brief  atomic.Bool   // the last attempt took less than briefTime
	resume chan struct{} // has a value when the goroutine of the stream should check whether to read

	role   sync.Mutex       // held by the reader
	held   bool             // by the goroutine of the stream, which alone uses this
	left   *protocol.ToHost // what an attempt has read besides its result; protected by role
	failed error            // why an attempt could not read; protected by role
}

const (
	// lookingTime is how long an attempt polls for its result without sleeping.
	lookingTime = 250 * time.Microsecond
	// briefTime is the longest attempt after which the next is expected to be brief as well.
	briefTime = 2 * lookingTime
)

// begin records that a result is expected, and reports whether its run is alone and likely to be brief.
func (g *reading) begin() (alone bool) { return g.due.Add(1) == 1 && g.brief.Load() }

// end records that a result has come, or never will.
func (g *reading) end() { g.due.Add(-1) }

// wake makes the goroutine of the stream read if it should.
func (g *reading) wake() {
	select {
	case g.resume <- struct{}{}:
	default: // it is about to check
	}
}

// await waits until the goroutine of the stream should read: a result is expected and no attempt reads, or the
// stream is over.
func (g *reading) await(over, gone <-chan struct{}) {
	if g.held && g.due.Load() > 0 {
		return
	}
	if g.held {
		g.role.Unlock()
		g.held = false
	}
	for g.due.Load() == 0 || !g.role.TryLock() {
		select {
		case <-g.resume:
			continue
		case <-over:
		case <-gone:
		}
		g.role.Lock()
		break
	}
	g.held = true
}

// next returns the next batch for the goroutine of the stream.
func (c *child) next(ctx context.Context, stream stream) (*protocol.ToHost, error) {
	if c.pipes == nil {
		return stream.Recv()
	}
	g := &c.reading
	g.await(ctx.Done(), c.process.gone)
	if g.failed != nil {
		return nil, g.failed
	}
	if left := g.left; left != nil {
		g.left = nil
		return left, nil
	}
	return stream.Recv()
}

// look polls for the result of a lone run, for a while. If it finds something else, it leaves that to the goroutine of
// the stream. Only one attempt across all processes polls at a time, as that keeps a processor busy.
func (c *child) look(r *run) *protocol.Result {
	g := &c.reading
	if c.looking == nil || !c.looking.CompareAndSwap(false, true) {
		return nil
	}
	defer c.looking.Store(false)
	if !g.role.TryLock() {
		return nil
	}
	defer g.role.Unlock()
	if g.left != nil {
		return nil
	}
	for until := time.Now().Add(lookingTime); time.Now().Before(until); yieldThread() {
		batch := &protocol.ToHost{}
		ok, err := c.pipes.Poll(batch)
		if err != nil {
			g.failed = err
			return nil
		}
		if !ok {
			continue
		}
		if frames := batch.GetFrames(); len(frames) == 1 && frames[0].GetRun() == r.id && frames[0].GetResult() != nil {
			return frames[0].GetResult()
		}
		g.left = batch
		return nil
	}
	return nil
}

// ring tells a process that is running a lone task to start reading, before frames other than that task are sent: they
// may not all fit into a pipe.
func (c *child) ring(frames []*protocol.HostFrame) {
	if len(frames) == 1 && frames[0].GetTask().GetAlone() || !c.unread.Swap(false) {
		return
	}
	_, _ = c.bell.Write([]byte{0}) // it fails when the process has ended, which is noticed elsewhere
}
