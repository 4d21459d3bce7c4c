package follow

import (
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/state"
)

// Life is a job in memory, from when it is first followed to when it no longer is or
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
type Life struct {
	Job state.Job
	// ID is that of the job's row; 0 = there is none.
	ID atomic.Int64

	users int // sources and deletions; protected by the lock of all lives

	mu    sync.Mutex // protects the fields below
	tasks int        // 0 = not known yet
	feeds map[*Source]state.Feed
	ended error // feeds get nothing any more; nil = they do

	// The writer alone uses what follows; it is of the open transaction.
	gone    bool // it is marked, or deleted
	isNew   bool // the row is to be inserted
	dirty   bool
	added   int64 // states
	changed int64 // when
}

// Row is what a reader has found of a job; the zero value = there is none.
type Row struct {
	ID     int64
	Tasks  int
	Marked bool
}

// Gone reports whether the job was marked or deleted, as the writer sees it.
func (l *Life) Gone() bool { return l.gone }

// New reports whether the job has no row yet but in the writer's memory.
func (l *Life) New() bool { return l.isNew }

// add lets a feed follow, unless the life has ended.
func (l *Life) add(src *Source, feed state.Feed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.feeds[src] = feed
	return true
}

// end ends all feeds.
func (l *Life) end(reason error) {
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
func (l *Life) tellLocked(s state.State) {
	if len(l.feeds) == 0 {
		return
	}
	states := []state.State{s}
	for _, feed := range l.feeds {
		feed.Put(states...)
	}
}

// settle notes what a reader has found of the job, and returns its number of
// tasks. A job without a row has as many as who came first said; 0 = none did.
func (l *Life) settle(found Row, tasks int) int {
	if found.ID != 0 {
		l.ID.CompareAndSwap(0, found.ID)
		tasks = found.Tasks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks == 0 {
		l.tasks = tasks
	}
	return l.tasks
}

// Tasks returns the number of tasks; 0 = it is not known yet.
func (l *Life) Tasks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks
}
