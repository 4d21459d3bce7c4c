package sqlitedb

import (
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// How long the writer waits before it tries again without room: twice as long each
// time. A try is one transaction that fails at its first write. A shortage lasts
// for shortest at least, so that one write that doesn't fit is one line in the log.
const (
	retrySoon = 10 * time.Millisecond
	retryLate = 200 * time.Millisecond
	shortest  = 50 * time.Millisecond
)

// shortage is what the writer does while the disk is full:
//
//	a write meets a full disk ─► the reserve is given up; new things are refused
//	                               │ again and again: what is kept, the log's way into the database
//	                               ▼
//	nothing is kept, the log is moved, the reserve is back ─► all is as before
//
// Only the writer uses it, but for the fields that the writer's lock protects.
type shortage struct {
	reserve *reserve // nil = there is none
	held    []Change // Kept and Tried, in their order
	owed    bool     // the log could not be moved into the database
	stuck   bool     // the last try found no room
	since   time.Time
	wait    time.Duration // between the last try and the next one
	next    time.Time     // try

	err    error // why; nil = the disk isn't full. Protected by writer.mu; only the writer changes it
	giveUp bool  // what is kept fails. Protected by writer.mu

	flowing atomic.Pointer[chan struct{}] // closed while no change is kept
}

// openShort takes the reserve at the start, or begins without it.
func (w *writer) openShort() {
	w.short.reserve = w.db.reserve
	err := w.db.owed
	if err == nil {
		err = w.short.reserve.take()
	}
	switch {
	case isFull(err):
		w.short.owed = w.db.owed != nil
		w.beginFull(err)
	case err != nil:
		w.db.log.Warn("no room can be kept back for when the disk is full", logkey.Error, err)
	}
}

// beginFull is called with the error that says that the disk is full.
func (w *writer) beginFull(err error) {
	s := &w.short
	if w.full() {
		return
	}
	s.since, s.wait = time.Now(), retrySoon
	s.next = s.since // with the reserve there may be room at once
	w.mu.Lock()
	s.err = explainWrite(err)
	w.mu.Unlock()
	if err := s.reserve.release(); err != nil {
		w.db.log.Warn("the disk is full, and the room that was kept back can't be used", logkey.Error, err)
	}
	w.db.log.Error("the disk is full: new jobs are refused, what has ended waits for room",
		logkey.Path, w.db.path, logkey.Error, err, logkey.Hint, hintFull)
}

// dueLocked reports whether it is time to look for room, and otherwise sees to it
// that the writer wakes up then.
func (w *writer) dueLocked() bool {
	s := &w.short
	if s.err == nil || w.closed && len(s.held) == 0 {
		return false
	}
	wait := time.Until(s.next)
	if wait <= 0 || s.giveUp && len(s.held) > 0 {
		return true
	}
	time.AfterFunc(wait, func() {
		w.mu.Lock() // not between the writer's look and its sleep
		defer w.mu.Unlock()
		w.work.Signal()
	})
	return false
}

// full is for the writer, which alone changes what it looks at.
func (w *writer) full() bool { return w.short.err != nil }

// endFull makes all as before, if there is room for the reserve again.
func (w *writer) endFull() {
	s := &w.short
	if err := s.reserve.take(); err != nil {
		if !isFull(err) {
			w.db.log.Warn("no room can be kept back for when the disk is full", logkey.Error, err)
		}
		s.stuck = true
		return
	}
	w.mu.Lock()
	s.err = nil
	w.mu.Unlock()
	w.db.log.Info("the disk has room again: new jobs are taken", logkey.Path, w.db.path)
}

// shift notifies the callers of a group of its outcome, except for changes that wait
// for room: they are set aside.
func (w *writer) shift(g *group) {
	told := g
	if full := g.full(); full != nil {
		w.beginFull(full)
		told = w.setAside(g)
	}
	if len(told.changes) > 0 {
		w.told <- told
	}
}

// full returns the error of a change that met a full disk; nil = none did.
func (g *group) full() error {
	if g.errs == nil {
		if isFull(g.err) {
			return g.err
		}
		return nil
	}
	for _, err := range g.errs {
		if isFull(err) {
			return err
		}
	}
	return nil
}

// setAside takes out of a group what may yet be made, and returns the rest.
func (w *writer) setAside(g *group) *group {
	rest := &group{errs: []error{}}
	for i, c := range g.changes {
		err := g.errOf(i)
		if isFull(err) && onFull(c) != Refused && !w.givenUp() {
			w.short.held = append(w.short.held, c)
			continue
		}
		rest.changes, rest.errs = append(rest.changes, c), append(rest.errs, err)
	}
	w.noteFlow()
	return rest
}

// errOf returns what became of the change of an index.
func (g *group) errOf(i int) error {
	if g.errs != nil {
		return g.errs[i]
	}
	return g.err
}

func (w *writer) givenUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.short.giveUp
}

// noteFlow opens or closes the channel of [DB.Flowing].
func (w *writer) noteFlow() {
	kept := false
	for _, c := range w.short.held {
		kept = kept || onFull(c) == Kept
	}
	flowing := *w.short.flowing.Load()
	select {
	case <-flowing:
		if kept {
			w.short.flowing.Store(new(make(chan struct{})))
		}
	default:
		if !kept {
			close(flowing)
		}
	}
}

// makeDo is what the writer does with a group of changes, which may be empty,
// while the disk is full.
func (w *writer) makeDo(g *group) {
	refusal := w.db.Full()
	refused := &group{err: refusal}
	for _, c := range g.changes {
		if onFull(c) == Refused {
			refused.changes = append(refused.changes, c)
		} else {
			w.short.held = append(w.short.held, c)
		}
	}
	if len(refused.changes) > 0 {
		w.told <- refused
	}
	if !w.short.stuck || time.Until(w.short.next) <= 0 || w.givenUp() {
		w.tryAgain()
	}
	w.noteFlow()
}

// tryAgain looks whether there is room by now.
func (w *writer) tryAgain() {
	s := &w.short
	s.stuck = false
	w.moveLog()
	w.tryHeld()
	if !s.owed && len(s.held) == 0 && time.Since(s.since) >= shortest {
		w.endFull()
	}
	s.next = time.Now().Add(s.wait)
	s.wait = min(2*s.wait, retryLate)
}

// moveLog writes the log back into the database, whose pages may have room there
// already: the log is then restarted, in the room that it has.
func (w *writer) moveLog() {
	if w.walPages > 0 || w.short.owed {
		w.walPages = max(w.walPages, w.softAt)
		w.checkpoint()
	}
}

// tryHeld makes what was set aside. If all of it finds no room, smaller pieces
// may: changes are then tried one by one, until some in a row have failed.
func (w *writer) tryHeld() {
	s := &w.short
	if len(s.held) == 0 {
		return
	}
	g := &group{changes: s.held}
	s.held = nil
	w.commit(g)
	if len(g.changes) > 1 && g.full() != nil {
		w.oneByOne(g)
	}
	last := w.givenUp()
	rest := &group{errs: []error{}}
	for i, c := range g.changes {
		err := g.errOf(i)
		if isFull(err) {
			s.stuck = true
			if onFull(c) == Kept && !last {
				s.held = append(s.held, c)
				continue
			}
		}
		rest.changes, rest.errs = append(rest.changes, c), append(rest.errs, err)
	}
	if len(rest.changes) > 0 {
		w.told <- rest
	}
}

// oneByOne makes each change of a group in a transaction of its own.
func (w *writer) oneByOne(g *group) {
	const enough = 4 // failures
	full, failed := g.full(), 0
	g.errs = make([]error, len(g.changes))
	for i := range g.changes {
		one := &group{changes: g.changes[i : i+1]}
		if one.err = full; failed < enough {
			one.err = nil
			w.commit(one)
		}
		if g.errs[i] = one.errOf(0); isFull(g.errs[i]) {
			failed++
		} else {
			failed = 0
		}
	}
}
