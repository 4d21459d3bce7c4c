package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// schemaStates keeps the ids of jobs of which there may be states elsewhere. With the
// row of the job, whatever deletes it, an id goes to states_gone, where what deletes the
// states finds it.
const schemaStates = `
CREATE TABLE states_noted(id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE states_gone(id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER job_states_gone AFTER DELETE ON job WHEN EXISTS(SELECT 1 FROM states_noted WHERE id=old.id) BEGIN
	DELETE FROM states_noted WHERE id=old.id;
	INSERT OR IGNORE INTO states_gone(id) VALUES(old.id);
END`

func noteStates(tx *sqlitedb.Tx, op *record.NoteStates) error {
	return tx.Stmt("INSERT OR IGNORE INTO states_noted(id) VALUES(?)").Text(op.ID).Exec()
}

func forgetStates(tx *sqlitedb.Tx, op *record.ForgetStates) error {
	for _, id := range op.IDs {
		if err := tx.Stmt("DELETE FROM states_gone WHERE id=?").Text(id).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// StatesOf implements [queue.StateReader].
func (s *Store) StatesOf(ctx context.Context, id string) (noted, gone bool, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT EXISTS(SELECT 1 FROM states_noted WHERE id=?1), EXISTS(SELECT 1 FROM states_gone WHERE id=?1)").Text(id)
		if st.Step() {
			noted, gone = st.ColInt(0) != 0, st.ColInt(1) != 0
		}
		return st.Done()
	})
	if err != nil {
		return false, false, fmt.Errorf("read of which jobs there are states: %w", err)
	}
	return noted, gone, nil
}

// StatesGone implements [queue.StateReader].
func (s *Store) StatesGone(ctx context.Context, after string, limit int) (ids []string, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT id FROM states_gone WHERE id>? ORDER BY id LIMIT ?").Text(after).Int(int64(limit))
		for st.Step() {
			ids = append(ids, st.ColText(0))
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read of which jobs the states are gone: %w", err)
	}
	return ids, nil
}

// Accompanied implements [queue.Accompanied].
func (s *Store) Accompanied(by any) bool {
	for _, c := range s.ledger.companions {
		if c == by {
			return true
		}
	}
	return false
}
