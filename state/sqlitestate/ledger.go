package sqlitestate

import (
	"time"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state/follow"
)

// ledger is what the writer keeps in memory beside the rows. Only the writer uses
// it; it is a [sqlitedb.Member].
type ledger struct{ *follow.Ledger }

// load reads the ledger of a database that was just opened.
func (g *ledger) load(q sqlitedb.Querier, lives *follow.Lives) error {
	s := q.Stmt("SELECT count(*), coalesce(max(id), 0), coalesce(max(changed_at), 0) FROM state_job")
	if s.Step() {
		g.Ledger = follow.NewLedger(lives, time.Now, s.ColInt(0), s.ColInt(1), s.ColInt(2))
	}
	return s.Done()
}

// flush writes the sums.
func (g *ledger) flush(tx *sqlitedb.Tx) error {
	for _, sum := range g.Sums() {
		var s *sqlitedb.Stmt
		if sum.New {
			s = tx.Stmt("INSERT INTO state_job(name, id, tasks, states, created_at, changed_at, deleted_at) VALUES(?1,?2,?3,?4,?5,?5,0)").
				Text(sum.Job.Key()).Int(sum.ID).Int(int64(sum.Tasks)).Int(sum.Added).Int(sum.Changed)
		} else {
			s = tx.Stmt("UPDATE state_job SET states=states+?, changed_at=? WHERE name=?").
				Int(sum.Added).Int(sum.Changed).Text(sum.Job.Key())
		}
		if err := s.Exec(); err != nil {
			return err
		}
	}
	g.Written()
	return nil
}

// BeforeCommit implements [sqlitedb.Member].
func (g *ledger) BeforeCommit(tx *sqlitedb.Tx) error { return g.flush(tx) }
