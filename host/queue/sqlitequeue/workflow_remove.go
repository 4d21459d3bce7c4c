package sqlitequeue

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// deleteWorkflow removes a workflow that somebody names, or a piece of it.
func (l *ledger) deleteWorkflow(tx *sqlitedb.Tx, op *queue.DeleteWorkflow, res *queue.OpResult) error {
	s := tx.Stmt("SELECT seq, status, parent_id FROM workflow WHERE id=?").Text(op.ID)
	if !s.Step() {
		res.Err = &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no workflow %s", op.ID)}
		return s.Done()
	}
	key, status, parent := s.ColInt(0), queue.WorkflowStatus(s.ColInt(1)), s.ColText(2)
	if err := s.Done(); err != nil {
		return err
	}
	switch {
	case status == queue.WorkflowRunning:
		res.Err = conflict("workflow %s has not ended", op.ID)
		return nil
	case parent != "":
		res.Err = conflict("workflow %s is a step of %s and goes with it", op.ID, parent)
		return nil
	}
	more, err := l.removeWorkflow(tx, key, int64(op.Limit), res)
	if more {
		res.Next = op.At
	}
	return err
}

// tidyWorkflows removes workflows whose time is over, about as many tasks as there is room for.
// more says that there are others, or something is left of one.
func (l *ledger) tidyWorkflows(tx *sqlitedb.Tx, op *queue.Tidy, res *queue.OpResult) (more bool, err error) {
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
		if more, err := l.removeWorkflow(tx, key, int64(op.Limit), res); more || err != nil {
			return more, err
		}
		res.Removed++ // itself: else those without jobs would have no bound
	}
	return true, nil
}

// removeWorkflow removes jobs of a workflow, and it with the last of them. From its first job on nobody
// sees it any more, and if somebody stops on the way it is over, so that it is tidied away.
func (l *ledger) removeWorkflow(tx *sqlitedb.Tx, key, limit int64, res *queue.OpResult) (more bool, err error) {
	if err := tx.Stmt("UPDATE workflow SET status=4, expires_at=1 WHERE seq=? AND status<>4").Int(key).Exec(); err != nil {
		return false, err
	}
	children, err := numbers(tx.Stmt("SELECT seq FROM workflow INDEXED BY workflow_parent WHERE parent=? AND parent>0 LIMIT ?").Int(key).Int(limit))
	if err != nil {
		return false, err
	}
	for _, child := range children {
		if more, err := l.removeWorkflow(tx, child, limit, res); more || err != nil {
			return more, err
		}
		if res.Removed >= limit {
			return true, nil
		}
	}
	if len(children) == int(limit) {
		return true, nil
	}
	jobs, err := numbers(tx.Stmt("SELECT job FROM workflow_job WHERE workflow=? LIMIT ?").Int(key).Int(limit))
	if err != nil {
		return false, err
	}
	for i, job := range jobs {
		if i > 0 && res.Removed >= limit {
			return true, nil
		}
		if err := l.removeStep(tx, key, job, res); err != nil {
			return false, err
		}
	}
	if len(jobs) == int(limit) {
		return true, nil
	}
	return false, dropWorkflow(tx, key)
}

// removeStep removes a job of a workflow, if it is still there.
func (l *ledger) removeStep(tx *sqlitedb.Tx, workflow, job int64, res *queue.OpResult) error {
	s := tx.Stmt("SELECT worker, tasks FROM job WHERE seq=?").Int(job)
	found := s.Step()
	t := &target{key: job}
	if found {
		t.worker, t.tasks = s.ColInt(0), s.ColInt(1)
	}
	if err := s.Done(); err != nil {
		return err
	}
	if found {
		if err := t.count(tx, t.key, t.end(), &t.counts); err != nil {
			return err
		}
		if err := l.remove(tx, t); err != nil {
			return err
		}
		res.Removed += t.tasks
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
