package sqlitequeue

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// target is a job that somebody wants to change, with the numbers of its tasks.
type target struct {
	key, worker, tasks int64
	counts             queue.StatusCounts
}

// end returns the key after the job's last task.
func (t *target) end() int64 { return t.key + t.tasks }

// find returns the job of an id, nil with res.Err set when there is none.
func find(tx *sqlitedb.Tx, id string, res *queue.OpResult) (*target, error) {
	s := tx.Stmt(`SELECT seq, worker, tasks, (SELECT name FROM worker WHERE worker.id=job.worker)
		FROM job WHERE id=?`).Text(id)
	if !s.Step() {
		res.Err = errNoJob(id)
		return nil, s.Done()
	}
	t := &target{key: s.ColInt(0), worker: s.ColInt(1), tasks: s.ColInt(2)}
	res.Key, res.Worker = queue.Key(t.key), s.ColText(3)
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = tx.Stmt("SELECT status, count(*) FROM task WHERE seq>=? AND seq<? GROUP BY status").Int(t.key).Int(t.end())
	for s.Step() {
		t.counts[s.ColInt(0)] = s.ColInt(1)
	}
	return t, s.Done()
}

// list puts those tasks of the job that the condition selects into res, as they are.
func (t *target) list(tx *sqlitedb.Tx, where string, res *queue.OpResult) error {
	s := tx.Stmt("SELECT seq, idx, level, attempt, ready_at, token FROM task WHERE seq>=? AND seq<? AND " + where).
		Int(t.key).Int(t.end())
	for s.Step() {
		res.Tasks = append(res.Tasks, queue.Changed{
			Key:     queue.Key(s.ColInt(0)),
			Index:   int(s.ColInt(1)),
			Level:   int(s.ColInt(2)),
			Attempt: int(s.ColInt(3)),
			ReadyAt: queue.Millis(s.ColInt(4)),
			Token:   s.ColInt(5),
		})
	}
	return s.Done()
}

func errNoJob(id string) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no job %s", id)}
}

func conflict(format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf(format, args...)}
}

// cancel ends the open tasks of a job.
func (l *ledger) cancel(tx *sqlitedb.Tx, op *queue.Cancel, res *queue.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	open := t.counts[queue.Open]
	if open == 0 {
		if t.counts[queue.Cancelled] == 0 {
			res.Err = conflict("job %s has ended already", op.ID)
		}
		return nil
	}
	if err := t.list(tx, "+status=0", res); err != nil {
		return err
	}
	l.expires(t.key, op.ExpiresAt)
	err = tx.Stmt("UPDATE task SET status=3, token=token+1, ended_at=?, expires_at=? WHERE seq>=? AND seq<? AND +status=0").
		Int(int64(op.At)).Int(int64(op.ExpiresAt)).Int(t.key).Int(t.end()).Exec()
	if err != nil {
		return err
	}
	return l.move(tx, t, queue.StatusCounts{queue.Open: -open, queue.Cancelled: open}, res)
}

// revive opens the dead and cancelled tasks of a job.
func (l *ledger) revive(tx *sqlitedb.Tx, op *queue.Revive, res *queue.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	dead, cancelled := t.counts[queue.Dead], t.counts[queue.Cancelled]
	if dead+cancelled == 0 {
		res.Err = conflict("job %s has no dead or cancelled task", op.ID)
		return nil
	}
	if err := t.list(tx, "+status>=2", res); err != nil {
		return err
	}
	for i := range res.Tasks {
		res.Tasks[i].Attempt, res.Tasks[i].ReadyAt = 0, op.At
		res.Tasks[i].Token++
	}
	err = tx.Stmt(`UPDATE task SET status=0, attempt=0, token=token+1, ready_at=?, ended_at=0, expires_at=0
		WHERE seq>=? AND seq<? AND +status>=2`).Int(int64(op.At)).Int(t.key).Int(t.end()).Exec()
	if err != nil {
		return err
	}
	by := queue.StatusCounts{queue.Open: dead + cancelled, queue.Dead: -dead, queue.Cancelled: -cancelled}
	return l.move(tx, t, by, res)
}

// move keeps all sums right after tasks of a job changed their status.
func (l *ledger) move(tx *sqlitedb.Tx, t *target, by queue.StatusCounts, res *queue.OpResult) error {
	for status, n := range by {
		if n != 0 {
			l.count(t.worker, queue.Status(status), n)
		}
		t.counts[status] += n
	}
	if t.tasks > 1 {
		return moveParts(tx, t.key, by, res)
	}
	if t.counts[queue.Open] == 0 {
		res.JobEnded, res.Final = true, t.counts
	}
	return nil
}

// delete removes a job that has ended.
func (l *ledger) delete(tx *sqlitedb.Tx, op *queue.Delete, res *queue.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	if t.counts[queue.Open] > 0 {
		res.Err = conflict("job %s has not ended", op.ID)
		return nil
	}
	return l.remove(tx, t)
}

// remove removes a job.
func (l *ledger) remove(tx *sqlitedb.Tx, t *target) error {
	if err := deleteRange(tx, t.key, t.end()); err != nil {
		return err
	}
	for status, n := range t.counts {
		if n != 0 {
			l.count(t.worker, queue.Status(status), -n)
		}
	}
	return nil
}

// deleteRange deletes all rows of the jobs with keys from low up to, and not
// including, high.
func deleteRange(tx *sqlitedb.Tx, low, high int64) error {
	for _, sql := range []string{
		"DELETE FROM job WHERE seq>=? AND seq<?",
		"DELETE FROM part WHERE job>=? AND job<?",
		"DELETE FROM task WHERE seq>=? AND seq<?",
		"DELETE FROM result WHERE task>=? AND task<?",
		"DELETE FROM failure WHERE task>=? AND task<?",
		"DELETE FROM log WHERE task>=? AND task<?",
	} {
		if err := tx.Stmt(sql).Int(low).Int(high).Exec(); err != nil {
			return err
		}
	}
	return nil
}
