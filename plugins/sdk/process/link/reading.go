package link

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// reading is the right to read from the host, which one goroutine has at a time. A goroutine that has read a lone task
// gives it up, runs the task, and takes it again: passing the task to another goroutine would wake a thread, which
// takes longer than most such tasks. During that time no goroutine reads, until the task asks the host for something,
// or the host rings because it has sent something else.
type reading struct {
	server *server
	stream stream
	out    *Sender[*protocol.WorkerFrame]
	ended  chan error // receives the error with which the stream ended; nil = the host has ended it

	role sync.Mutex  // held by the reader
	rung atomic.Bool // since the last check
}

// newReading returns the right to read, which the caller holds.
func newReading(s *server, stream stream, out *Sender[*protocol.WorkerFrame]) *reading {
	r := &reading{server: s, stream: stream, out: out, ended: make(chan error, 1)}
	r.role.Lock()
	return r
}

// read reads from the host as long as it has the right to, or until the stream ends: then no goroutine gets the right
// any more. After a lone task has ended another goroutine may have taken it.
func (r *reading) read() {
	for {
		batch, err := r.stream.Recv()
		if err != nil {
			r.end(err)
			return
		}
		if run := r.alone(batch); run != nil {
			r.role.Unlock()
			if r.rung.Swap(false) { // perhaps before the right was given up
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

// alone returns the run of a batch that consists only of a lone task; nil = it doesn't.
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

// relieve has another goroutine read if none does.
func (r *reading) relieve() {
	if r.role.TryLock() {
		r.server.employ(nil)
	}
}

// listen calls relieve when the host rings, and when it has gone.
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
