package pgdb

import (
	"context"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// Bounds of the pipeline.
const (
	maxQueued = 8192    // operations; Write waits while so many are queued
	maxGroup  = 2048    // operations of one commit, unless a single change is larger
	maxBytes  = 1 << 20 // of content of one commit, unless a single change is larger: half of a larger message may
	// have been sent when a host is stopped, and the server waits for the rest with the fence locked
	maxRounds = 12 // in which a group finds out which rows it needs
)

// Change is something to make durable.
type Change interface {
	// Size is about how many rows the change writes, and how many bytes they have.
	Size() (ops, bytes int)
	// Apply makes the change in memory, in the images that the members of the commit keep, or by statements: see
	// [Tx.Direct]. It may run several times, each time on images as they were before, so it must not rely on what an
	// earlier run left elsewhere: when rows are missing from an image, Apply runs to its end without them, its results are
	// discarded, and it runs again once they were read. An error or a panic undoes this change only; refusals that are
	// expected belong in the change's own results.
	Apply(tx *Tx) error
	// Done is called once: with nil when the change is durable, with an error when it was not made. If the error wraps
	// [ErrTermOver] it may be unknown whether it was made. Done must not block.
	Done(err error)
}

// group is the changes of one commit.
type group struct {
	changes []Change
	err     error   // of all
	errs    []error // of each; nil = none has one of its own
}

// outcome returns why a change was not made; nil = it was.
func (g *group) outcome(i int) error {
	if err := g.errOf(i); err != nil {
		return err
	}
	return g.err
}

// errOf returns the error of one change, apart from that of the group; nil = it has none.
func (g *group) errOf(i int) error {
	if len(g.errs) == 0 {
		return nil
	}
	return g.errs[i]
}

// Writer commits changes in a term. One goroutine writes, another one calls Done.
type Writer struct {
	term *Term
	tx   Tx
	n    int64 // of the last batch that was acknowledged

	// Of the commit in the making:
	scouted bool           // a run has noted which rows are looked at after calls of [Tx.Direct]
	later   []afterDirects // the tables in which it has

	mu     sync.Mutex // protects queue, queued, closed and short
	room   sync.Cond  // Write waits here for room
	work   sync.Cond  // the writer waits here for changes
	queue  []Change
	queued int // operations in queue
	closed bool
	short  shortage

	finished chan *group // to the goroutine that calls Done
	done     sync.WaitGroup
}

// NewWriter starts the writer of a term. There may be one at a time. It asks the server nothing: a connection that is lost is
// the writer's to replace.
func (t *Term) NewWriter(context.Context) (*Writer, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	w := &Writer{term: t, finished: make(chan *group, 4)}
	w.room.L, w.work.L = &w.mu, &w.mu
	w.short.flowing = make(chan struct{})
	close(w.short.flowing)
	w.n = t.acknowledged.Load()
	w.done.Go(w.run)
	w.done.Go(w.notify)
	return w, nil
}

func errClosed() error {
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the store is closed"}
}

// Write queues a change. It blocks while more than a few thousand operations are queued. The changes of one goroutine are
// made in the order in which it writes them.
func (w *Writer) Write(c Change) {
	ops, _ := c.Size()
	w.mu.Lock()
	for w.queued >= maxQueued && !w.closed {
		w.room.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		go c.Done(errClosed()) // the caller may hold a lock that Done needs
		return
	}
	w.queue = append(w.queue, c)
	w.queued += ops
	w.mu.Unlock()
	w.work.Signal()
}

// Close refuses further changes, and waits until Done was called for those that are queued.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.giveUpLocked()
	w.mu.Unlock()
	w.room.Broadcast()
	w.done.Wait()
}

// take waits for changes and removes a group of them from the queue; nil = the writer is closed.
func (w *Writer) take() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 || w.short.pausing {
		if len(w.queue) == 0 && w.closed {
			return nil
		}
		w.work.Wait()
	}
	n, ops, bytes := 0, 0, 0
	for ; n < len(w.queue); n++ {
		o, b := w.queue[n].Size()
		if n > 0 && (ops+o > maxGroup || bytes+b > maxBytes) {
			break
		}
		ops, bytes = ops+o, bytes+b
	}
	g := &group{changes: append(make([]Change, 0, n), w.queue[:n]...)}
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	w.queued -= ops
	w.room.Broadcast()
	return g
}

func (w *Writer) run() {
	defer close(w.finished)
	for g := w.take(); g != nil; g = w.take() {
		begun := time.Now()
		w.commitEach(g)
		if f := w.term.db.cfg.Observer.Committed; f != nil && g.err == nil {
			f(len(g.changes), time.Since(begun))
		}
		w.finished <- w.keepBack(g)
	}
}

func (w *Writer) notify() {
	for g := range w.finished {
		for i, c := range g.changes {
			c.Done(g.outcome(i))
		}
	}
}
