package pgdb

import (
	"errors"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Patient is a [Change] that waits while the server can't write, because its disk is full, it is read only, or a session
// of others has a lock: its caller can't undo what it records. It is tried again before all that comes after it. What
// brings such changes must bound their number: see [Writer.Flowing].
type Patient interface {
	Change
	// Patient reports whether the change waits.
	Patient() bool
}

func isPatient(c Change) bool {
	p, ok := c.(Patient)
	return ok && p.Patient()
}

// How long the writer waits before it tries again: twice as long each time.
const (
	retrySoon = 20 * time.Millisecond
	retryLate = 500 * time.Millisecond
)

// shortage is what the writer does while the server can't write. The writer's lock protects it.
type shortage struct {
	err     error // why, while changes are kept back; nil = none is
	kept    int   // how many changes, the first ones of the queue, are kept back
	pausing bool  // until they are tried again
	wait    time.Duration
	giveUp  bool
	flowing chan struct{} // closed while none is kept back
}

// tooShort is why a commit was refused that may be made later.
type tooShort struct{ error }

func (e *tooShort) Unwrap() error { return e.error }

func newTooShort(err error) error {
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "write to PostgreSQL: " + reasonOf(err)}
	if stateOf(err) == diskFull {
		e.Field, e.Hint, e.RetryAfter = jobhost.FieldDisk, "make room on the disk of the database; jobs are taken again by themselves", 5*time.Second
	}
	return &tooShort{e}
}

// Full returns why changes are kept back, an error with code unavailable; nil = none is.
func (w *Writer) Full() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.short.err
}

// Flowing returns a channel that is closed as soon as no change is kept back. Who brings changes that are patient waits
// for it before bringing more.
func (w *Writer) Flowing() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.short.flowing
}

// GiveUp lets changes fail that are kept back, after one more try, now and from now on: the process is about to end.
func (w *Writer) GiveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.giveUpLocked()
}

func (w *Writer) giveUpLocked() {
	w.short.giveUp, w.short.pausing = true, false
	w.work.Broadcast()
}

// keepBack puts the changes of a group back that can wait for the server, and returns the others.
func (w *Writer) keepBack(g *group) *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest, kept, reason := g, []Change(nil), error(nil)
	if g.isTemporary() && !w.short.giveUp {
		rest = &group{}
		for i, c := range g.changes {
			short, ok := errors.AsType[*tooShort](g.outcome(i))
			if ok && isPatient(c) {
				kept, reason = append(kept, c), short.error
				continue
			}
			rest.changes, rest.errs = append(rest.changes, c), append(rest.errs, g.outcome(i))
		}
	}
	w.queue = slices.Insert(w.queue, 0, kept...)
	for _, c := range kept {
		ops, _ := c.Size()
		w.queued += ops
	}
	w.short.kept = max(w.short.kept-len(g.changes), 0) + len(kept)
	w.noteShortageLocked(reason)
	return rest
}

// isTemporary reports whether a change of the group may be made later.
func (g *group) isTemporary() bool {
	for i := range g.changes {
		if _, short := errors.AsType[*tooShort](g.outcome(i)); short {
			return true
		}
		if len(g.errs) == 0 {
			return false // all have the same outcome
		}
	}
	return false
}

// noteShortageLocked takes in what a try has come to. reason is why changes were kept back; nil = none was.
func (w *Writer) noteShortageLocked(reason error) {
	s, log := &w.short, w.term.db.cfg.Logger
	switch {
	case reason != nil:
		if s.err == nil {
			s.flowing, s.wait = make(chan struct{}), retrySoon
			log.Error("the database can't be written to: what has ended waits for it", logkey.Error, reason)
		}
		s.err, s.pausing = reason, true
		time.AfterFunc(s.wait, w.goOn)
		s.wait = min(2*s.wait, retryLate)
	case s.err != nil && s.kept == 0:
		s.err = nil
		close(s.flowing)
		log.Info("nothing waits any more for the database to be written to")
	}
}

// goOn ends a pause.
func (w *Writer) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.short.pausing = false
	w.work.Broadcast()
}
