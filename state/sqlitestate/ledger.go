package sqlitestate

import (
	"time"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// ledger is what the writer keeps in memory beside the rows. Only the writer uses
// it; it is a [sqlitedb.Member].
type ledger struct {
	store   *Store
	next    int64 // id of the next job; one that was given out is never again
	rows    int64 // of state_job
	settled int64 // rows, as of the last commit
	clock   int64 // the last time that was given out

	// Of the open transaction:
	dirty []*life // with sums to write
	made  []*life // with a new row
	gone  []*life // whose job is deleted
}

// load reads the ledger of a database that was just opened.
func (g *ledger) load(q sqlitedb.Querier) error {
	s := q.Stmt("SELECT count(*), coalesce(max(id), 0), coalesce(max(changed_at), 0) FROM state_job")
	if s.Step() {
		g.rows, g.next, g.clock = s.ColInt(0), s.ColInt(1)+1, s.ColInt(2)
	}
	g.settled = g.rows
	return s.Done()
}

// now returns the time, which never falls back, whatever the clock does.
func (g *ledger) now() int64 {
	g.clock = max(g.clock, time.Now().UnixMicro())
	return g.clock
}

// idOf returns the id of a job, which is made if it isn't there.
func (g *ledger) idOf(l *life) (id int64, isNew bool) {
	if id := l.id.Load(); id != 0 {
		return id, false
	}
	id = g.next
	g.next++
	g.rows++
	l.id.Store(id)
	l.isNew = true
	g.made = append(g.made, l)
	return id, true
}

// note keeps the sums of a job that has changed.
func (g *ledger) note(l *life, added, at int64) {
	l.added += added
	l.changed = at
	if !l.dirty {
		l.dirty = true
		g.dirty = append(g.dirty, l)
	}
}

// flush writes the sums.
func (g *ledger) flush(tx *sqlitedb.Tx) error {
	for _, l := range g.dirty {
		var s *sqlitedb.Stmt
		if l.isNew {
			s = tx.Stmt("INSERT INTO state_job(name, id, tasks, states, created_at, changed_at, deleted_at) VALUES(?1,?2,?3,?4,?5,?5,0)").
				Text(l.job.Key()).Int(l.id.Load()).Int(int64(l.size())).Int(l.added).Int(l.changed)
		} else {
			s = tx.Stmt("UPDATE state_job SET states=states+?, changed_at=? WHERE name=?").
				Int(l.added).Int(l.changed).Text(l.job.Key())
		}
		if err := s.Exec(); err != nil {
			return err
		}
		l.isNew = false
		l.clean()
	}
	g.dirty = g.dirty[:0]
	return nil
}

// clean forgets the sums.
func (l *life) clean() { l.dirty, l.added, l.changed = false, 0, 0 }

// BeforeCommit implements [sqlitedb.Member].
func (g *ledger) BeforeCommit(tx *sqlitedb.Tx) error { return g.flush(tx) }

// AfterCommit implements [sqlitedb.Member].
func (g *ledger) AfterCommit() {
	g.settled = g.rows
	for _, l := range g.gone {
		g.store.bury(l)
		g.store.leave(l)
	}
	g.forget()
}

// AfterRollback implements [sqlitedb.Member].
func (g *ledger) AfterRollback() {
	g.rows = g.settled
	for _, l := range g.made {
		l.id.Store(0)
		l.isNew = false
	}
	for _, l := range g.dirty {
		l.clean()
	}
	for _, l := range g.gone {
		l.gone = false
		g.store.leave(l)
	}
	g.forget()
}

func (g *ledger) forget() {
	clear(g.dirty)
	clear(g.made)
	clear(g.gone)
	g.dirty, g.made, g.gone = g.dirty[:0], g.made[:0], g.gone[:0]
}
