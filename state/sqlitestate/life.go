package sqlitestate

import (
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/state"
)

// life is a job in memory, from when it is first followed to when it no longer is or
// it is deleted; there is one of a job at a time, which all its sources share.
//
// A deletion takes the life of the job, or a new one if there is none, marks it
// within the transaction, and ends it after the commit. So a user who comes in
// between joins a life that is about to end: what it has read of a job that is
// going it won't keep, and nothing is written through it, since the writer
// looks at the mark. Who comes after finds no row.
//
// For the same reason the id that a reader has found is the job's for as long as
// the life isn't marked, and a life without an id has no row.
type life struct {
	job   state.Job
	users int // sources and deletions; protected by the store's lock

	id atomic.Int64 // of the job's row; 0 = there is none

	mu    sync.Mutex // protects the fields below
	tasks int        // 0 = not known yet
	feeds map[*source]state.Feed
	ended error // feeds get nothing any more; nil = they do

	// The writer alone uses what follows; it is of the open transaction.
	gone    bool // it is marked, or deleted
	isNew   bool // the row is to be inserted
	dirty   bool
	added   int64 // states
	changed int64 // when
}

// join returns the life of a job, with a user more.
func (s *Store) join(job state.Job) *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.lives[job.ID]
	if runs == nil {
		runs = map[string]*life{}
		s.lives[job.ID] = runs
	}
	l := runs[job.Run]
	if l == nil {
		l = &life{job: job, feeds: map[*source]state.Feed{}}
		runs[job.Run] = l
	}
	l.users++
	return l
}

// leave takes a user from a life, which ends without one.
func (s *Store) leave(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if l.users == 0 {
		s.dropLocked(l)
	}
}

// dropLocked forgets a life.
func (s *Store) dropLocked(l *life) {
	runs := s.lives[l.job.ID]
	if runs[l.job.Run] != l {
		return
	}
	delete(runs, l.job.Run)
	if len(runs) == 0 {
		delete(s.lives, l.job.ID)
	}
}

// bury ends a life whose job was deleted. The next one to come begins another.
func (s *Store) bury(l *life) {
	s.mu.Lock()
	s.dropLocked(l)
	s.mu.Unlock()
	l.end(state.ErrDeleted)
}

// follow makes a source of a life that has not ended.
func (s *Store) follow(job state.Job, feed state.Feed) (*source, error) {
	for {
		l := s.join(job)
		src := &source{store: s, life: l}
		added := l.add(src, feed)
		switch {
		case s.isClosed(): // looked at now, since Close ends what it finds
			_ = src.Close() // never fails
			return nil, state.ErrClosed
		case added:
			return src, nil
		}
		s.leave(l)
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// add lets a feed follow, unless the life has ended.
func (l *life) add(src *source, feed state.Feed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.feeds[src] = feed
	return true
}

// end ends all feeds.
func (l *life) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return
	}
	l.ended = reason
	for _, feed := range l.feeds {
		feed.End(reason)
	}
	clear(l.feeds)
}

// tellLocked hands a state to all feeds.
func (l *life) tellLocked(s state.State) {
	if len(l.feeds) == 0 {
		return
	}
	states := []state.State{s}
	for _, feed := range l.feeds {
		feed.Put(states...)
	}
}

// tell hands states to one feed, if it is still there.
func (l *life) tell(src *source, states []state.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if feed := l.feeds[src]; feed != nil {
		feed.Put(states...)
	}
}

// settle notes what a reader has found of the job, and returns its number of
// tasks. A job without a row has as many as who came first said; 0 = none did.
func (l *life) settle(found row, tasks int) int {
	if found.id != 0 {
		l.id.CompareAndSwap(0, found.id)
		tasks = found.tasks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks == 0 {
		l.tasks = tasks
	}
	return l.tasks
}

// size returns the number of tasks; 0 = it is not known yet.
func (l *life) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks
}
