package sqlitequeue

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// target is a job that is to be changed, with the numbers of its tasks.
type target struct {
	key, worker, tasks int64
	counts             record.StatusCounts
}

// end returns the key after the job's last task.
func (t *target) end() int64 { return t.key + t.tasks }

// find returns the job of an id, nil with res.Err set when there is none.
func find(tx *sqlitedb.Tx, id string, res *record.OpResult) (*target, error) {
	s := tx.Stmt(`SELECT seq, worker, tasks, (SELECT name FROM worker WHERE worker.id=job.worker)
		FROM job WHERE id=?`).Text(id)
	if !s.Step() {
		res.Err = errNoJob(id)
		return nil, s.Done()
	}
	t := &target{key: s.ColInt(0), worker: s.ColInt(1), tasks: s.ColInt(2)}
	res.Key, res.Worker = record.Key(t.key), s.ColText(3)
	if err := s.Done(); err != nil {
		return nil, err
	}
	return t, t.count(tx, t.key, t.end(), &t.counts)
}

// count counts the tasks with keys from low up to, and not including, high.
func (t *target) count(tx *sqlitedb.Tx, low, high int64, counts *record.StatusCounts) error {
	s := tx.Stmt("SELECT status, count(*) FROM task WHERE seq>=? AND seq<? GROUP BY status").Int(low).Int(high)
	for s.Step() {
		counts[s.ColInt(0)] += s.ColInt(1)
	}
	return s.Done()
}

// taskRange is a range of keys of tasks, without high.
type taskRange struct{ low, high int64 }

// only returns the tasks of those indexes, and how many there are in each
// status; nil indexes stand for all tasks. With res.Err set there is no such task.
func (t *target) only(tx *sqlitedb.Tx, indexes []int, res *record.OpResult) ([]taskRange, record.StatusCounts, error) {
	if indexes == nil {
		return []taskRange{{t.key, t.end()}}, t.counts, nil
	}
	var (
		ranges []taskRange
		counts record.StatusCounts
	)
	for _, i := range slices.Compact(slices.Sorted(slices.Values(indexes))) {
		if i < 0 || int64(i) >= t.tasks {
			res.Err = &jobhost.Error{
				Code: jobhost.CodeNotFound, Field: "task",
				Message: fmt.Sprintf("there is no task %d, the job has %d", i, t.tasks),
			}
			return nil, counts, nil
		}
		r := taskRange{t.key + int64(i), t.key + int64(i) + 1}
		if err := t.count(tx, r.low, r.high, &counts); err != nil {
			return nil, counts, err
		}
		ranges = append(ranges, r)
	}
	return ranges, counts, nil
}

// list puts those tasks that the condition selects into res, as they are.
func (r taskRange) list(tx *sqlitedb.Tx, where string, res *record.OpResult) error {
	s := tx.Stmt("SELECT seq, idx, level, attempt, ready_at, token, lane_group FROM task WHERE seq>=? AND seq<? AND " + where).
		Int(r.low).Int(r.high)
	for s.Step() {
		res.Tasks = append(res.Tasks, record.Changed{
			Key:     record.Key(s.ColInt(0)),
			Index:   int(s.ColInt(1)),
			Level:   int(s.ColInt(2)),
			Attempt: int(s.ColInt(3)),
			ReadyAt: record.Millis(s.ColInt(4)),
			Token:   s.ColInt(5),
			Group:   record.Group(s.ColInt(6)),
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

// stillOpen is the error of removing what has not ended.
func stillOpen(thing, id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Message: thing + " " + id + " has not ended", Hint: "cancel it first: jobhost " + thing + " cancel " + id,
	}
}

// cancel ends the open tasks of a job.
func (l *ledger) cancel(tx *sqlitedb.Tx, op *record.Cancel, res *record.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	ranges, counts, err := t.only(tx, op.Tasks, res)
	if res.Err != nil || err != nil {
		return err
	}
	open := counts[record.Open]
	if open == 0 {
		if counts[record.Cancelled] == 0 {
			res.Err = conflict("%s has ended already", named(op.ID, op.Tasks))
		}
		return nil
	}
	l.expires(t.key, op.ExpiresAt)
	for _, r := range ranges {
		if err := r.list(tx, "+status=0", res); err != nil {
			return err
		}
		err := tx.Stmt("UPDATE task SET status=3, token=token+1, ended_at=?, expires_at=? WHERE seq>=? AND seq<? AND +status=0").
			Int(int64(op.At)).Int(int64(op.ExpiresAt)).Int(r.low).Int(r.high).Exec()
		if err != nil {
			return err
		}
	}
	return l.move(tx, t, record.StatusCounts{record.Open: -open, record.Cancelled: open}, res)
}

// revive opens the dead and cancelled tasks of a job.
func (l *ledger) revive(tx *sqlitedb.Tx, op *record.Revive, res *record.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	ranges, counts, err := t.only(tx, op.Tasks, res)
	if res.Err != nil || err != nil {
		return err
	}
	dead, cancelled := counts[record.Dead], counts[record.Cancelled]
	if dead+cancelled == 0 {
		res.Err = conflict("%s has no dead or cancelled task", named(op.ID, op.Tasks))
		return nil
	}
	for _, r := range ranges {
		if err := r.revive(tx, op.At, dead > 0, res); err != nil {
			return err
		}
	}
	for i := range res.Tasks {
		res.Tasks[i].Attempt, res.Tasks[i].ReadyAt = 0, op.At
		res.Tasks[i].Token++
	}
	by := record.StatusCounts{record.Open: dead + cancelled, record.Dead: -dead, record.Cancelled: -cancelled}
	return l.move(tx, t, by, res)
}

// revive opens the tasks of a range, and marks their letters if there are any.
func (r taskRange) revive(tx *sqlitedb.Tx, at record.Millis, dead bool, res *record.OpResult) error {
	if err := r.list(tx, "+status>=2", res); err != nil {
		return err
	}
	if dead {
		err := tx.Stmt("UPDATE dead SET revived_at=? WHERE task>=? AND task<? AND revived_at=0").
			Int(int64(at)).Int(r.low).Int(r.high).Exec()
		if err != nil {
			return err
		}
	}
	return tx.Stmt(`UPDATE task SET status=0, attempt=0, token=token+1, ready_at=?, ended_at=0, expires_at=0, deadline=0
		WHERE seq>=? AND seq<? AND +status>=2`).Int(int64(at)).Int(r.low).Int(r.high).Exec()
}

// named says what was to be changed.
func named(id string, indexes []int) string {
	if indexes == nil {
		return "job " + id
	}
	return fmt.Sprintf("job %s, asked for tasks %v,", id, indexes)
}

// move keeps all sums right after tasks of a job changed their status.
func (l *ledger) move(tx *sqlitedb.Tx, t *target, by record.StatusCounts, res *record.OpResult) error {
	for status, n := range by {
		if n != 0 {
			l.count(t.worker, record.Status(status), n)
		}
		t.counts[status] += n
	}
	if t.tasks > 1 {
		return moveParts(tx, t.key, by, res)
	}
	if t.counts[record.Open] == 0 {
		res.JobEnded, res.Final = true, t.counts
	}
	return nil
}

// delete removes a job that has ended.
func (l *ledger) delete(tx *sqlitedb.Tx, op *record.Delete, res *record.OpResult) error {
	t, err := find(tx, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	if t.counts[record.Open] > 0 {
		res.Err = stillOpen("job", op.ID)
		return nil
	}
	if err := isStep(tx, t, op.ID, res); err != nil || res.Err != nil {
		return err
	}
	if err := l.remove(tx, t); err != nil {
		return err
	}
	return tellGone(tx, res)
}

// remove removes a job.
func (l *ledger) remove(tx *sqlitedb.Tx, t *target) error {
	if err := l.deleteRange(tx, t.key, t.end()); err != nil {
		return err
	}
	for status, n := range t.counts {
		if n != 0 {
			l.count(t.worker, record.Status(status), -n)
		}
	}
	return nil
}

// deleteRange deletes all rows of the jobs with keys from low up to, and not
// including, high.
func (l *ledger) deleteRange(tx *sqlitedb.Tx, low, high int64) error {
	for _, c := range l.companions {
		if !c.Any() {
			continue
		}
		ids, err := idsOf(tx, low, high)
		if err != nil {
			return err
		}
		if err := c.Removing(tx, ids); err != nil {
			return fmt.Errorf("remove what belongs to jobs: %w", err)
		}
	}
	for _, sql := range []string{
		"DELETE FROM job WHERE seq>=? AND seq<?",
		"DELETE FROM part WHERE job>=? AND job<?",
		"DELETE FROM child WHERE job>=? AND job<?",
		"DELETE FROM task WHERE seq>=? AND seq<?",
		"DELETE FROM result WHERE task>=? AND task<?",
		"DELETE FROM failure WHERE task>=? AND task<?",
		"DELETE FROM log WHERE task>=? AND task<?",
		"DELETE FROM item WHERE task>=? AND task<?",
		"DELETE FROM dead WHERE task>=? AND task<?",
	} {
		if err := tx.Stmt(sql).Int(low).Int(high).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// idsOf returns the ids of the jobs with keys from low up to, and not including, high.
func idsOf(tx *sqlitedb.Tx, low, high int64) (ids []string, err error) {
	s := tx.Stmt("SELECT id FROM job WHERE seq>=? AND seq<?").Int(low).Int(high)
	for s.Step() {
		ids = append(ids, s.ColText(0))
	}
	return ids, s.Done()
}
