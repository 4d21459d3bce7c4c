package process

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// reading is the right to read what a process says over its pipes, which one goroutine has at a time: that of the stream,
// as long as results are to come. When there is none it gives the right up. Then the goroutine of an attempt that is alone in
// the process may have it, and look for its result without sleeping: to wake a thread takes longer than what most tasks do.
type reading struct {
	due    atomic.Int64  // runs whose result is to come
	brief  atomic.Bool   // the last attempt took less than briefTime
	resume chan struct{} // has one when the goroutine of the stream is to look whether it should read

	role   sync.Mutex       // held by who reads
	held   bool             // by the goroutine of the stream, which alone looks at this
	left   *protocol.ToHost // what an attempt has read besides its result; of role
	failed error            // why an attempt could not read; of role
}

const (
	// lookingTime is for how long an attempt looks for its result without sleeping.
	lookingTime = 250 * time.Microsecond
	// briefTime is what an attempt takes at most for the next to be expected to be brief as well.
	briefTime = 2 * lookingTime
)

// begin notes that a result is to come, and reports whether its run is alone, and can be expected to be brief.
func (g *reading) begin() (alone bool) { return g.due.Add(1) == 1 && g.brief.Load() }

// end notes that a result has come, or never will.
func (g *reading) end() { g.due.Add(-1) }

// wake has the goroutine of the stream read if it should.
func (g *reading) wake() {
	select {
	case g.resume <- struct{}{}:
	default: // it is about to look
	}
}

// await waits until the goroutine of the stream should read: there is a result to come, and no attempt reads, or
// the stream is over.
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

// look looks for the result of a run that is alone, for a while. If it finds something else it leaves that to the goroutine
// of the stream. Only one attempt of all processes does so at a time: whoever looks keeps a processor busy.
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

// ring tells a process that runs a task that is alone that somebody has to read, before frames are sent that are not that
// task: there may be more of them than fits into a pipe.
func (c *child) ring(frames []*protocol.HostFrame) {
	if len(frames) == 1 && frames[0].GetTask().GetAlone() || !c.unread.Swap(false) {
		return
	}
	_, _ = c.bell.Write([]byte{0}) // it fails when the process has ended, which is noticed elsewhere
}
