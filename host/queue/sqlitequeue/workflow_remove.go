package sqlitequeue

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// deleteWorkflow removes the workflow of an id, or a piece of it.
func (l *ledger) deleteWorkflow(tx *sqlitedb.Tx, op *record.DeleteWorkflow, res *record.OpResult) error {
	s := tx.Stmt("SELECT seq, status, parent_id FROM workflow WHERE id=?").Text(op.ID)
	if !s.Step() {
		res.Err = &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no workflow %s", op.ID)}
		return s.Done()
	}
	key, status, parent := s.ColInt(0), record.WorkflowStatus(s.ColInt(1)), s.ColText(2)
	if err := s.Done(); err != nil {
		return err
	}
	switch {
	case status == record.WorkflowRunning:
		res.Err = stillOpen("workflow", op.ID)
		return nil
	case parent != "":
		res.Err = conflict("workflow %s is a step of %s and goes with it", op.ID, parent)
		return nil
	}
	runs, err := runningStep(tx, key)
	if err != nil {
		return err
	}
	if runs != "" {
		res.Err = conflict("workflow %s, a step of %s, has not ended", runs, op.ID)
		return nil
	}
	more, err := l.removeWorkflow(tx, key, &removal{int64(op.Limit), op.At, res})
	if more {
		res.Next = op.At
	}
	return err
}

// below are a workflow and those that are its steps, and theirs.
const below = `WITH RECURSIVE below(seq) AS (VALUES(?)
	UNION ALL SELECT workflow.seq FROM below JOIN workflow ON workflow.parent=below.seq WHERE workflow.parent>0) `

// runningStep returns the id of a workflow that runs as a step of another, or of one of its steps; empty = none
// does. That is so when it was retried after the end of the other.
func runningStep(tx *sqlitedb.Tx, key int64) (id string, err error) {
	s := tx.Stmt(below + "SELECT id FROM workflow WHERE seq IN below AND status=0 LIMIT 1").Int(key)
	if s.Step() {
		id = s.ColText(0)
	}
	return id, s.Done()
}

// laterRemoval is how much longer a workflow is kept of which a step still runs.
const laterRemoval = 60_000 // milliseconds

// removal is how much may be removed, and what comes of it.
type removal struct {
	limit int64
	at    record.Millis
	res   *record.OpResult
}

// full reports whether no more may be removed.
func (r *removal) full() bool { return r.res.Removed >= r.limit }

// tidyWorkflows removes workflows whose time is over, about as many tasks as there is room for.
// more says that there are others, or something is left of one.
func (l *ledger) tidyWorkflows(tx *sqlitedb.Tx, op *record.Tidy, res *record.OpResult) (more bool, err error) {
	for res.Removed < int64(op.Limit) {
		s := tx.Stmt("SELECT seq FROM workflow INDEXED BY workflow_due WHERE expires_at>0 AND expires_at<=? ORDER BY expires_at LIMIT 1").
			Int(int64(op.At))
		if !s.Step() {
			return false, s.Done()
		}
		key := s.ColInt(0)
		if err := s.Done(); err != nil {
			return false, err
		}
		runs, err := runningStep(tx, key)
		if err != nil {
			return false, err
		}
		if runs != "" {
			if err := tx.Stmt("UPDATE workflow SET expires_at=? WHERE seq=?").Int(int64(op.At) + laterRemoval).Int(key).Exec(); err != nil {
				return false, err
			}
			continue
		}
		if more, err := l.removeWorkflow(tx, key, &removal{int64(op.Limit), op.At, res}); more || err != nil {
			return more, err
		}
		res.Removed++ // itself: else those without jobs would have no bound
	}
	return true, nil
}

// removeWorkflow removes jobs of a workflow, and it with the last of them. From its first job on it
// is not shown any more, and if the removal stops on the way its time is over, so that it is tidied away.
func (l *ledger) removeWorkflow(tx *sqlitedb.Tx, key int64, r *removal) (more bool, err error) {
	if err := tx.Stmt("UPDATE workflow SET status=4, expires_at=1 WHERE seq=? AND status<>4").Int(key).Exec(); err != nil {
		return false, err
	}
	if tx.Changes() > 0 { // nor can anybody retry one of those below
		if err := tx.Stmt(below + "UPDATE workflow SET status=4 WHERE seq IN below").Int(key).Exec(); err != nil {
			return false, err
		}
	}
	children, err := numbers(tx.Stmt("SELECT seq FROM workflow INDEXED BY workflow_parent WHERE parent>0 AND parent=? LIMIT ?").Int(key).Int(r.limit))
	if err != nil {
		return false, err
	}
	for _, child := range children {
		if more, err := l.removeWorkflow(tx, child, r); more || err != nil {
			return more, err
		}
		if r.full() {
			return true, nil
		}
	}
	if len(children) == int(r.limit) {
		return true, nil
	}
	jobs, err := numbers(tx.Stmt("SELECT job FROM workflow_job WHERE workflow=? LIMIT ?").Int(key).Int(r.limit))
	if err != nil {
		return false, err
	}
	for i, job := range jobs {
		if i > 0 && r.full() {
			return true, nil
		}
		if err := l.removeStep(tx, key, job, r); err != nil {
			return false, err
		}
	}
	if len(jobs) == int(r.limit) {
		return true, nil
	}
	return false, dropWorkflow(tx, key)
}

// removeStep removes a job of a workflow, if it is still there.
func (l *ledger) removeStep(tx *sqlitedb.Tx, workflow, job int64, r *removal) error {
	s := tx.Stmt("SELECT id, options->>'$.origin.id', options->>'$.origin.step' FROM job WHERE seq=?").Int(job)
	id, origin := "", &record.Origin{Workflow: record.Key(workflow)}
	if s.Step() {
		id, origin.ID, origin.Step = s.ColText(0), s.ColText(1), s.ColText(2)
	}
	if err := s.Done(); err != nil {
		return err
	}
	if id != "" {
		var found record.OpResult
		t, err := find(tx, id, &found)
		if err != nil {
			return err
		}
		if t.counts[record.Open] > 0 {
			// It was revived. Its lane must forget it, and its attempt be cancelled.
			if err := l.cancel(tx, &record.Cancel{ID: id, At: r.at}, &found); err != nil {
				return err
			}
			r.res.Dropped = append(r.res.Dropped, droppedOf(id, origin, &found))
			t.counts[record.Cancelled] += t.counts[record.Open]
			t.counts[record.Open] = 0
		}
		if err := l.remove(tx, t); err != nil {
			return err
		}
		r.res.Removed += t.tasks
		l.expires(t.key, r.at) // or its block would not be looked at again when it is empty
	}
	return tx.Stmt("DELETE FROM workflow_job WHERE workflow=? AND job=?").Int(workflow).Int(job).Exec()
}

// dropWorkflow deletes the rows of a workflow without jobs, and its definition with the last that runs it.
func dropWorkflow(tx *sqlitedb.Tx, key int64) error {
	for _, sql := range []string{
		"UPDATE definition_use SET n=n-1 WHERE definition=(SELECT definition FROM workflow WHERE seq=?)",
		"DELETE FROM definition WHERE id=(SELECT definition FROM definition_use WHERE n<=0 AND definition=(SELECT definition FROM workflow WHERE seq=?))",
		"DELETE FROM definition_use WHERE n<=0 AND definition=(SELECT definition FROM workflow WHERE seq=?)",
		"DELETE FROM workflow WHERE seq=?",
		"DELETE FROM workflow_data WHERE workflow=?",
		"DELETE FROM workflow_step WHERE workflow=?",
	} {
		if err := tx.Stmt(sql).Int(key).Exec(); err != nil {
			return err
		}
	}
	return nil
}

func numbers(s *sqlitedb.Stmt) (list []int64, err error) {
	for s.Step() {
		list = append(list, s.ColInt(0))
	}
	return list, s.Done()
}
