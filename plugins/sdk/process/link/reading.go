package link

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// reading is the right to read what the host says, which one goroutine has at a time. Whoever has read a task that is alone
// gives it up, runs the task, and takes it again: to hand the task to another goroutine would wake a thread, which takes longer than most
// such tasks. Meanwhile nobody reads, until the task asks the host for something, or the host rings since it has said
// something else.
type reading struct {
	server *server
	stream stream
	out    *Sender[*protocol.WorkerFrame]
	ended  chan error // has the error with which the stream has ended; nil = the host has ended it

	role sync.Mutex  // held by who reads
	rung atomic.Bool // since it was looked last
}

// newReading returns the right to read, which the caller has.
func newReading(s *server, stream stream, out *Sender[*protocol.WorkerFrame]) *reading {
	r := &reading{server: s, stream: stream, out: out, ended: make(chan error, 1)}
	r.role.Lock()
	return r
}

// read takes what the host says as long as it has the right to, or until the stream ends: then nobody gets that any more.
// Another may have got it when a task has ended that was alone.
func (r *reading) read() {
	for {
		batch, err := r.stream.Recv()
		if err != nil {
			r.end(err)
			return
		}
		if run := r.alone(batch); run != nil {
			r.role.Unlock()
			if r.rung.Swap(false) { // perhaps too early to find that nobody reads
				r.relieve()
			}
			r.server.run(run)
			if !r.role.TryLock() {
				return
			}
			continue
		}
		for _, f := range batch.GetFrames() {
			if err := r.server.take(f, r.out); err != nil {
				r.end(err)
				return
			}
		}
	}
}

func (r *reading) end(err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.ended <- err
}

// alone returns the run of a batch that is a task and nothing else, if it is alone; nil = it is not.
func (r *reading) alone(batch *protocol.ToWorker) *Run {
	frames := batch.GetFrames()
	if len(frames) != 1 || !frames[0].GetTask().GetAlone() || !r.server.quiet() {
		return nil
	}
	if ahead, ok := r.stream.(interface{ Buffered() int }); !ok || ahead.Buffered() > 0 {
		return nil
	}
	run := newRun(frames[0].GetRun(), frames[0].GetTask(), r.out)
	run.relieve = r.relieve
	return r.server.add(run)
}

// relieve has another goroutine read if nobody does.
func (r *reading) relieve() {
	if r.role.TryLock() {
		r.server.employ(nil)
	}
}

// listen relieves whoever runs a task when the host rings, and when it has gone.
func (r *reading) listen(bell io.Reader) {
	rings := make([]byte, 64)
	for {
		_, err := bell.Read(rings)
		r.rung.Store(true)
		r.relieve()
		if err != nil {
			return
		}
	}
}
