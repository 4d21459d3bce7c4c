package sqlitequeue

import (
	"fmt"
	"time"

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
	if status != queue.WorkflowRemoving {
		if busy, err := l.goesOn(tx, key); busy || err != nil {
			res.Err = conflict("workflow %s has ended, but a job or workflow of it was retried by itself and has not", op.ID)
			return err
		}
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
	for busy := int64(0); res.Removed+busy < int64(op.Limit); {
		s := tx.Stmt("SELECT seq, status FROM workflow INDEXED BY workflow_due WHERE expires_at>0 AND expires_at<=? ORDER BY expires_at LIMIT 1").
			Int(int64(op.At))
		if !s.Step() {
			return false, s.Done()
		}
		key, status := s.ColInt(0), queue.WorkflowStatus(s.ColInt(1))
		if err := s.Done(); err != nil {
			return false, err
		}
		if status != queue.WorkflowRemoving {
			later, err := l.goesOn(tx, key)
			if later && err == nil {
				busy++
				err = tx.Stmt("UPDATE workflow SET expires_at=? WHERE seq=?").Int(int64(op.At) + lookAgain.Milliseconds()).Int(key).Exec()
			}
			if err != nil {
				return false, err
			}
			if later {
				continue
			}
		}
		if more, err := l.removeWorkflow(tx, key, int64(op.Limit), res); more || err != nil {
			return more, err
		}
		res.Removed++ // itself: else those without jobs would have no bound
	}
	return true, nil
}

// lookAgain is how long a workflow is kept longer that is over, but of which something goes on.
const lookAgain = time.Minute

// goesOn reports whether something of a workflow that has ended has not: a job or a workflow that somebody retried by
// itself, whose lane or engine counts on it. Timers are let go: with nobody to tell, they do nothing.
func (l *ledger) goesOn(tx *sqlitedb.Tx, key int64) (bool, error) {
	open, err := numbers(tx.Stmt(`SELECT job.seq FROM workflow_job JOIN job ON job.seq=workflow_job.job
		WHERE workflow_job.workflow=? AND job.worker<>? AND CASE
			WHEN job.tasks=1 THEN EXISTS(SELECT 1 FROM task WHERE task.seq=job.seq AND task.status=0)
			ELSE EXISTS(SELECT 1 FROM part WHERE part.job=job.seq AND part.open>0) END
		LIMIT 1`).Int(key).Int(l.workers[jobhost.WorkflowWorker]))
	if len(open) > 0 || err != nil {
		return len(open) > 0, err
	}
	open, err = numbers(tx.Stmt("SELECT seq FROM workflow INDEXED BY workflow_parent WHERE parent=? AND parent>0 AND status=0 LIMIT 1").Int(key))
	if len(open) > 0 || err != nil {
		return len(open) > 0, err
	}
	children, err := numbers(tx.Stmt("SELECT seq FROM workflow INDEXED BY workflow_parent WHERE parent=? AND parent>0").Int(key))
	for i := 0; i < len(children) && err == nil; i++ {
		var busy bool
		if busy, err = l.goesOn(tx, children[i]); busy {
			return true, err
		}
	}
	return false, err
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
	of, err := numbers(tx.Stmt("SELECT definition FROM workflow WHERE seq=?").Int(key))
	if err != nil {
		return err
	}
	for _, id := range of {
		if err := leaveDefinition(tx, id); err != nil {
			return err
		}
	}
	for _, sql := range []string{
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

// leaveDefinition notes that one workflow less runs a definition.
func leaveDefinition(tx *sqlitedb.Tx, id int64) error {
	if err := tx.Stmt("UPDATE definition SET uses=uses-1 WHERE id=?").Int(id).Exec(); err != nil {
		return err
	}
	return tx.Stmt("DELETE FROM definition WHERE id=? AND uses<=0").Int(id).Exec()
}

func numbers(s *sqlitedb.Stmt) (list []int64, err error) {
	for s.Step() {
		list = append(list, s.ColInt(0))
	}
	return list, s.Done()
}
