package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state/payload"
)

// schemaObjects keeps the references to payloads and results that lie outside of
// the database: beside their job and task, and in object, so that they are found
// by their names. With their row, whatever deletes it, they go to object_gone,
// where the janitor of the objects finds them.
const schemaObjects = `
ALTER TABLE job ADD COLUMN ref TEXT;
ALTER TABLE task ADD COLUMN ref TEXT;
CREATE TABLE object(ref TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE object_gone(ref TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER job_object_gone AFTER DELETE ON job WHEN old.ref IS NOT NULL BEGIN
	DELETE FROM object WHERE ref=old.ref;
	INSERT OR IGNORE INTO object_gone(ref) VALUES(old.ref);
END;
CREATE TRIGGER task_object_gone AFTER DELETE ON task WHEN old.ref IS NOT NULL BEGIN
	DELETE FROM object WHERE ref=old.ref;
	INSERT OR IGNORE INTO object_gone(ref) VALUES(old.ref);
END`

// checkRef refuses a job whose payload belongs to another one, unless its unique
// key says that it is one that is there. The same job submitted again is for the
// caller to find first.
func (l *ledger) checkRef(tx *sqlitedb.Tx, job *record.JobSpec, res *record.OpResult) (bool, error) {
	if worker, known := l.workers[job.Worker]; known && job.UniqueKey != "" {
		if there, err := l.taken(tx, job, worker, res); there || err != nil {
			return there, err
		}
	}
	name := payload.NameOf(job.Ref)
	for _, sql := range []string{
		"SELECT 1 FROM object WHERE ref>=? AND ref<? LIMIT 1",
		"SELECT 1 FROM object_gone WHERE ref>=? AND ref<? LIMIT 1",
	} {
		s := tx.Stmt(sql).Text(name).Text(payload.NameEnd(name))
		there := s.Step()
		if err := s.Done(); err != nil {
			return false, err
		}
		if there {
			res.Err = record.ErrRefTaken()
			return true, nil
		}
	}
	return false, nil
}

// addObject makes a reference live.
func addObject(tx *sqlitedb.Tx, ref string) error {
	return tx.Stmt("INSERT INTO object(ref) VALUES(?)").Text(ref).Exec()
}

// setResultRef notes where the result of a task is.
func setResultRef(tx *sqlitedb.Tx, op *record.Settle) error {
	err := tx.Stmt("UPDATE task SET ref=?, result_size=? WHERE seq=?").Text(op.ResultRef).Int(op.ResultSize).Int(int64(op.Key)).Exec()
	if err != nil {
		return err
	}
	return addObject(tx, op.ResultRef)
}

// tellGone records in res whether there are references or states that are gone.
func tellGone(q sqlitedb.Querier, res *record.OpResult) error {
	s := q.Stmt("SELECT 1 WHERE EXISTS(SELECT 1 FROM object_gone) OR EXISTS(SELECT 1 FROM states_gone)")
	res.Gone = s.Step()
	return s.Done()
}

// forget removes references that are gone.
func forget(tx *sqlitedb.Tx, op *record.Forget) error {
	for _, ref := range op.Refs {
		if err := tx.Stmt("DELETE FROM object_gone WHERE ref=?").Text(ref).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// Gone implements [queue.ObjectReader].
func (s *Store) Gone(ctx context.Context, after string, limit int) (refs []string, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT ref FROM object_gone WHERE ref>? ORDER BY ref LIMIT ?").Text(after).Int(int64(limit))
		for st.Step() {
			refs = append(refs, st.ColText(0))
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return refs, nil
}

// Live implements [queue.ObjectReader].
func (s *Store) Live(ctx context.Context, names []string) ([]bool, error) {
	live := make([]bool, len(names))
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		for i, name := range names {
			st := r.Stmt("SELECT 1 FROM object WHERE ref>=? AND ref<? LIMIT 1").Text(name).Text(payload.NameEnd(name))
			live[i] = st.Step()
			if err := st.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return live, nil
}
