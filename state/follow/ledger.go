package follow

import (
	"slices"
	"time"

	"github.com/jobhost/jobhost/state"
)

// Ledger is what a store's writer keeps in memory beside the rows: ids, the sums of jobs that the open transaction
// changes, and what it deletes. Only the writer uses it.
type Ledger struct {
	lives   *Lives
	clock   func() time.Time
	next    int64 // id of the next job; one that was given out is never again
	rows    int64 // of jobs
	settled int64 // rows, as of the last commit
	last    int64 // the last time that was given out

	// Of the open transaction:
	dirty []*Life // with sums to write
	made  []*Life // with a new row
	gone  []*Life // whose job is deleted
}

// NewLedger returns the ledger of a store that has so many rows of jobs, their greatest id and their latest change in
// microseconds since 1970.
func NewLedger(lives *Lives, clock func() time.Time, rows, greatest, latest int64) *Ledger {
	return &Ledger{lives: lives, clock: clock, next: greatest + 1, rows: rows, settled: rows, last: latest}
}

// Rows returns how many jobs have a row.
func (g *Ledger) Rows() int64 { return g.rows }

// Now returns the time in microseconds since 1970, which never falls back, whatever the clock does.
func (g *Ledger) Now() int64 {
	g.last = max(g.last, g.clock().UnixMicro())
	return g.last
}

// IDOf returns the id of a job, which gets a row if it has none.
func (g *Ledger) IDOf(l *Life) int64 {
	if id := l.ID.Load(); id != 0 {
		return id
	}
	id := g.next
	g.next++
	g.rows++
	l.ID.Store(id)
	l.isNew = true
	g.made = append(g.made, l)
	return id
}

// Note keeps the sums of a job that has changed.
func (g *Ledger) Note(l *Life, added, at int64) {
	l.added += added
	l.changed = at
	if !l.dirty {
		l.dirty = true
		g.dirty = append(g.dirty, l)
	}
}

// Sum is what is to be written of a job.
type Sum struct {
	ID      int64
	Job     state.Job
	Tasks   int
	New     bool  // the row is to be inserted
	Added   int64 // states
	Changed int64 // when
}

// Sums returns what is to be written.
func (g *Ledger) Sums() []Sum {
	if len(g.dirty) == 0 {
		return nil
	}
	sums := make([]Sum, len(g.dirty))
	for i, l := range g.dirty {
		sums[i] = Sum{ID: l.ID.Load(), Job: l.Job, Tasks: l.Tasks(), New: l.isNew, Added: l.added, Changed: l.changed}
	}
	return sums
}

// Unwritten reports whether there are sums to write of a run of these jobs.
func (g *Ledger) Unwritten(ids []string) bool {
	for _, l := range g.dirty {
		if slices.Contains(ids, l.Job.ID) {
			return true
		}
	}
	return false
}

// Written forgets sums that were written.
func (g *Ledger) Written() {
	for _, l := range g.dirty {
		l.isNew = false
		l.clean()
	}
	clear(g.dirty)
	g.dirty = g.dirty[:0]
}

// clean forgets the sums.
func (l *Life) clean() { l.dirty, l.added, l.changed = false, 0, 0 }

// Doom marks the life of a job that is being deleted, or a new one.
func (g *Ledger) Doom(job state.Job) {
	l := g.lives.Join(job)
	if l.gone {
		g.lives.Leave(l)
		return
	}
	l.gone = true
	g.gone = append(g.gone, l)
}

// Deleted counts rows that the transaction has deleted.
func (g *Ledger) Deleted(rows int) { g.rows -= int64(rows) }

// Followed reports whether a job is followed, which is there then, if without
// states.
func (g *Ledger) Followed(job state.Job) bool {
	l := g.lives.Join(job)
	defer g.lives.Leave(l)
	return !l.gone && l.Tasks() > 0
}

// GiveRow gives a job that is followed a row, unless it has one.
func (g *Ledger) GiveRow(job state.Job) {
	l := g.lives.Join(job)
	defer g.lives.Leave(l)
	if l.ID.Load() == 0 && !l.gone && l.Tasks() > 0 {
		g.IDOf(l)
		g.Note(l, 0, g.Now())
	}
}

// AfterCommit ends the lives of jobs that were deleted.
func (g *Ledger) AfterCommit() {
	g.Written()
	g.settled = g.rows
	for _, l := range g.gone {
		g.lives.bury(l)
		g.lives.Leave(l)
	}
	g.forget()
}

// AfterRollback takes back what the transaction has changed.
func (g *Ledger) AfterRollback() {
	g.rows = g.settled
	for _, l := range g.made {
		l.ID.Store(0)
		l.isNew = false
	}
	for _, l := range g.dirty {
		l.clean()
	}
	for _, l := range g.gone {
		l.gone = false
		g.lives.Leave(l)
	}
	g.forget()
}

func (g *Ledger) forget() {
	clear(g.dirty)
	clear(g.made)
	clear(g.gone)
	g.dirty, g.made, g.gone = g.dirty[:0], g.made[:0], g.gone[:0]
}
