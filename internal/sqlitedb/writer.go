package sqlitedb

import (
	"cmp"
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// Bounds of the pipeline, in operations as [Change.Ops] counts them.
const (
	maxQueued = 8192 // Write waits while so many are queued
	maxGroup  = 2048 // of one transaction, unless a single change is larger
)

// Change is something to make durable.
type Change interface {
	// Ops is the weight of the change: about how many rows it writes, one more
	// for every 16 KiB of content.
	Ops() int
	// Apply makes the change within a transaction that others share. It may
	// run again after a rollback, so it must not rely on what an earlier run
	// left in memory. An error or a panic undoes this change only; refusals
	// that are expected belong into the change's own results instead.
	Apply(tx *Tx) error
	// Done is called once: with nil when the change is durable, or with the
	// error that kept it from being made. After an I/O error on commit it is
	// open until the database was opened again whether it was. Done must not
	// block: changes that follow are notified after it.
	Done(err error)
}

// Tx is the writer's transaction within [Change.Apply].
type Tx struct {
	*conn
	members   []Member
	shrinking bool // Shrink has begun and not come to its end
}

// Changes returns how many rows the last statement changed.
func (tx *Tx) Changes() int64 { return tx.db.Changes() }

// Member keeps in memory what belongs to the rows of a transaction: sums that
// are written once at its end, or numbers to take back after a rollback. Its
// methods are called by the writer only.
type Member interface {
	// BeforeCommit is called once at the end of a transaction that was joined.
	BeforeCommit(tx *Tx) error
	// AfterCommit is called when the transaction is durable.
	AfterCommit()
	// AfterRollback is called when it was undone, even before BeforeCommit.
	AfterRollback()
}

// Join makes m a member of the transaction; joining again changes nothing.
func (tx *Tx) Join(m Member) {
	for _, other := range tx.members {
		if other == m {
			return
		}
	}
	tx.members = append(tx.members, m)
}

// group is what one transaction holds.
type group struct {
	changes []Change
	ops     int
	err     error   // of all
	errs    []error // of each, when they were made one by one; else nil
}

// writer is the one goroutine that writes, and the one that notifies callers.
type writer struct {
	db *DB
	tx Tx

	mu     sync.Mutex // protects queue, queued, closed
	room   sync.Cond  // Write waits here for room
	work   sync.Cond  // the writer waits here for changes
	queue  []Change
	queued int // operations in queue
	closed bool

	// told passes groups to the notifier. When it is full the writer waits: the
	// callers behind Done don't keep up, and more commits would not help.
	told chan *group
	done sync.WaitGroup

	short shortage

	walPages int // in the WAL after the last commit
	softAt   int // pages at which to write the WAL back
	hardAt   int // pages at which to make the WAL start over

	failed  chan struct{} // closed after failure was set
	failure error
}

func newWriter(db *DB, c *conn) *writer {
	w := &writer{
		db: db, tx: Tx{conn: c},
		told:   make(chan *group, 4),
		softAt: cmp.Or(db.opts.CheckpointPages, walSoft),
		failed: make(chan struct{}),
	}
	w.hardAt = w.softAt * walHard
	w.room.L, w.work.L = &w.mu, &w.mu
	flowing := make(chan struct{})
	close(flowing)
	w.short.flowing.Store(&flowing)
	// With a hook of ours SQLite checkpoints no more by itself within COMMIT:
	// the writer does it after the callers were notified.
	c.db.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.walPages = pages
		return nil
	})
	return w
}

func (w *writer) start() {
	w.done.Go(w.run)
	w.done.Go(w.notify)
}

// Write queues a change, waiting while more than a few thousand operations are
// queued already. Changes are made in the order in which one goroutine writes
// them.
func (db *DB) Write(c Change) {
	w := db.writer
	w.mu.Lock()
	for w.queued >= maxQueued && !w.closed {
		w.room.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		// The notifier has gone, and the caller may hold a lock that Done needs.
		go c.Done(errClosed())
		return
	}
	w.queue = append(w.queue, c)
	w.queued += c.Ops()
	w.mu.Unlock()
	w.work.Signal()
}

// take waits for changes and removes a group of them from the queue; nil at the
// end. The group is empty when it is time to look for room on the disk.
func (w *writer) take() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.dueLocked() {
		if w.closed {
			return nil
		}
		w.work.Wait()
	}
	g := &group{}
	n := 0
	for ; n < len(w.queue); n++ {
		ops := w.queue[n].Ops()
		if n > 0 && g.ops+ops > maxGroup {
			break
		}
		g.ops += ops
	}
	g.changes = append(make([]Change, 0, n), w.queue[:n]...)
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	w.queued -= g.ops
	w.room.Broadcast()
	return g
}

// run is the writer's loop.
func (w *writer) run() {
	defer close(w.told)
	for g := w.take(); g != nil; g = w.take() {
		if w.full() {
			w.makeDo(g)
			continue
		}
		w.commit(g)
		w.shift(g)
		w.checkpoint()
	}
}

// notify is the notifier's loop.
func (w *writer) notify() {
	for g := range w.told {
		for i, c := range g.changes {
			err := g.err
			if g.errs != nil {
				err = g.errs[i]
			}
			c.Done(err)
		}
	}
}

// stop refuses further changes and waits until all queued ones are notified.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed, w.short.giveUp = true, true
	w.mu.Unlock()
	w.work.Broadcast()
	w.room.Broadcast()
	w.done.Wait()
}

// closeConn closes the connection. SQLite then writes the WAL into the
// database, but not after a failure that leaves open what the WAL holds; that
// has been notified, and what Close says after it is of no use.
func (w *writer) closeConn() error {
	w.tx.db.WALHook(nil)
	if w.failure == nil {
		err := w.settle()
		if w.full() || isFull(err) {
			// The log and its index keep their files, without which the next start had
			// to find room first.
			_, _ = w.tx.db.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true)
			err = nil
		}
		return errors.Join(err, w.tx.close())
	}
	keepOnClose(w.tx.conn)
	_ = w.tx.close()
	return nil
}

// fail stops all writing for good.
func (w *writer) fail(err error) {
	w.failure = explainWrite(err)
	close(w.failed)
}
