package hosttest

import (
	"context"
	"iter"
	"time"

	"github.com/jobhost/jobhost"
)

// Wait implements [jobhost.Watcher].
func (f *Fake) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	for {
		f.mu.Lock()
		job, err := f.findLocked(id)
		if err != nil {
			f.mu.Unlock()
			return jobhost.Job{}, err
		}
		now, done := job.describe(true), job.done
		f.mu.Unlock()
		if now.State.Ended() {
			return now, nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// fakeHub keeps the last events and hands new ones to its readers.
type fakeHub struct {
	buffer  int
	seq     uint64
	past    []jobhost.Event // the last of all
	readers map[*fakeReader]bool
	more    chan struct{} // closed when there is another reader; nil = nobody waits for that
	closed  bool
}

// fakePast is how many events are remembered.
const fakePast = 4096

// fakeReader is one reader of events. Its events are those that it has not
// seen; wake holds one, to say that there are some.
type fakeReader struct {
	query  jobhost.EventQuery
	events []jobhost.Event
	err    error // ends it after events
	wake   chan struct{}
}

func (r *fakeReader) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (h *fakeHub) close() {
	h.closed = true
	for r := range h.readers {
		h.drop(r, problem(jobhost.CodeUnavailable, "", "the host has stopped"))
	}
}

func (h *fakeHub) drop(r *fakeReader, err error) {
	delete(h.readers, r)
	r.err = err
	r.signal()
}

func (h *fakeHub) publish(e jobhost.Event) jobhost.Event {
	h.seq++
	e.Seq, e.Time = h.seq, time.Now().UTC()
	if len(h.past) == 2*fakePast {
		h.past = append(h.past[:0], h.past[fakePast:]...)
	}
	h.past = append(h.past, e)
	for r := range h.readers {
		switch {
		case !r.query.Selects(&e):
		case len(r.events) >= h.buffer:
			h.drop(r, problem(jobhost.CodeExhausted, "", "the reader was too slow"))
		default:
			r.events = append(r.events, e)
			r.signal()
		}
	}
	return e
}

func (f *Fake) tellLocked(job *fakeJob, e jobhost.Event) {
	e.Job, e.Worker = job.spec.ID, job.spec.Worker
	if job.workflow != nil {
		e.Workflow, e.Step = job.workflow.id, job.workflow.steps[job.run.Step].Name
	}
	e = f.hub.publish(e)
	f.states.Published(&e)
}

func (f *Fake) tellTaskLocked(job *fakeJob, i int, kind jobhost.EventKind, failure *jobhost.Failure) {
	t := &job.tasks[i]
	f.tellLocked(job, jobhost.Event{Kind: kind, Task: i, Attempt: t.Attempt, State: t.State, Course: t.Course, Failure: failure})
}

// Events implements [jobhost.Watcher].
func (f *Fake) Events(ctx context.Context, query jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	return func(yield func(jobhost.Event, error) bool) {
		r := f.subscribe(query)
		defer f.unsubscribe(r)
		for {
			f.mu.Lock()
			events, err := r.events, r.err
			r.events = nil
			f.mu.Unlock()
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err == nil && len(events) == 0 {
				select {
				case <-r.wake:
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
			}
			if err != nil && len(events) == 0 {
				yield(jobhost.Event{Time: time.Now()}, err)
				return
			}
		}
	}
}

func (f *Fake) subscribe(query jobhost.EventQuery) *fakeReader {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &fakeReader{query: query, wake: make(chan struct{}, 1)}
	for _, e := range f.hub.past {
		if query.After > 0 && e.Seq > query.After && query.Selects(&e) {
			r.events = append(r.events, e)
		}
	}
	if f.hub.readers == nil {
		f.hub.readers = map[*fakeReader]bool{}
	}
	f.hub.readers[r] = true
	if f.hub.more != nil {
		close(f.hub.more)
		f.hub.more = nil
	}
	if f.hub.closed {
		f.hub.close()
	}
	return r
}

func (f *Fake) unsubscribe(r *fakeReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hub.readers, r)
}

// AwaitReaders returns when n streams of events are open, so that a test knows
// that what it does next is seen. The error is the context's cause.
func (f *Fake) AwaitReaders(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		if len(f.hub.readers) >= n {
			f.mu.Unlock()
			return nil
		}
		if f.hub.more == nil {
			f.hub.more = make(chan struct{})
		}
		more := f.hub.more
		f.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
