package pgqueue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// The functions in this file and in remove.go change rows without the image. Their session must come straight from
// [pgdb.Tx.Direct], so that the image is empty.

// target is a job to change, with the numbers of its tasks by status.
type target struct {
	key, worker, tasks int64
	counts             record.StatusCounts
	id, options        string
}

// keys returns the keys of the job's tasks.
func (t *target) keys() keyRange { return keyRange{t.key, t.key + t.tasks} }

// find returns the job of an id. If there is none it returns nil and sets res.Err.
func (im *image) find(s *pgdb.Session, id string, res *record.OpResult) (*target, error) {
	t := &target{id: id}
	var first record.Status
	n := &t.counts
	found, err := s.One([]any{
		&t.key, &t.worker, &t.tasks, &t.options, &first, &n[record.Open], &n[record.Succeeded], &n[record.Dead], &n[record.Cancelled],
	}, `SELECT j.seq, j.worker, j.tasks, j.options, t.status,
			coalesce(p.open, 0), coalesce(p.succeeded, 0), coalesce(p.dead, 0), coalesce(p.cancelled, 0)
		FROM jobhost.job j JOIN jobhost.task t ON t.seq=j.seq LEFT JOIN jobhost.part p ON p.job=j.seq WHERE j.id=$1`, id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		res.Err = errNoJob(id)
		return nil, nil
	}
	if t.tasks == 1 {
		n[first] = 1
	}
	res.Key, res.Worker = record.Key(t.key), im.names[t.worker]
	return t, nil
}

// choice is some tasks of a job.
type choice struct {
	*target
	only   []int64 // their keys; nil = all
	counts record.StatusCounts
}

// choose returns the tasks with some indexes; nil = all tasks. If one doesn't exist it returns nil and sets res.Err.
func (t *target) choose(s *pgdb.Session, indexes []int, res *record.OpResult) (*choice, error) {
	c := &choice{target: t, counts: t.counts}
	if indexes == nil {
		return c, nil
	}
	c.only, c.counts = []int64{}, record.StatusCounts{}
	for _, i := range slices.Compact(slices.Sorted(slices.Values(indexes))) {
		if i < 0 || int64(i) >= t.tasks {
			res.Err = &jobhost.Error{
				Code: jobhost.CodeNotFound, Field: "task",
				Message: fmt.Sprintf("there is no task %d, the job has %d", i, t.tasks),
			}
			return nil, nil
		}
		c.only = append(c.only, t.key+int64(i))
	}
	var status record.Status
	var n int64
	return c, s.Each([]any{&status, &n}, func() error {
		c.counts[status] = n
		return nil
	}, "SELECT status, count(*) FROM jobhost.task WHERE seq=ANY($1) GROUP BY status", c.only)
}

// chosen selects the tasks of a choice, by the arguments of update. Conditions on the status that follow are written such
// that no index is used: its statistics may be old, and it may hold every open task by now.
const chosen = " WHERE seq>=$1 AND seq<$2 AND ($3::bigint[] IS NULL OR seq=ANY($3)) "

// update changes tasks of the choice, and adds them to res as they are afterwards.
func (c *choice) update(s *pgdb.Session, res *record.OpResult, sql string, args ...any) error {
	var task record.Changed
	keys := c.keys()
	err := s.Each([]any{&task.Key, &task.Index, &task.Level, &task.Attempt, &task.ReadyAt, &task.Token, &task.Group}, func() error {
		res.Tasks = append(res.Tasks, task)
		return nil
	}, sql+" RETURNING seq, idx, level, attempt, ready_at, token, lane_group", append([]any{keys.low, keys.high, c.only}, args...)...)
	slices.SortFunc(res.Tasks, func(a, b record.Changed) int { return cmp.Compare(a.Key, b.Key) })
	return err
}

// stillOpen is the error for removing something that has not ended.
func stillOpen(thing, id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Message: thing + " " + id + " has not ended", Hint: "cancel it first: jobhost " + thing + " cancel " + id,
	}
}

func errNoJob(id string) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no job %s", id)}
}

func conflict(format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf(format, args...)}
}

// cancel ends the open tasks of a job.
func (b *batch) cancel(tx *pgdb.Tx, op *record.Cancel, res *record.OpResult) error {
	s := tx.Direct()
	if s == nil {
		return nil
	}
	return b.image.cancel(s, op, res)
}

// cancel ends the open tasks of a job. The rest of the operation is up to the caller.
func (im *image) cancel(s *pgdb.Session, op *record.Cancel, res *record.OpResult) error {
	t, err := im.find(s, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	c, err := t.choose(s, op.Tasks, res)
	if c == nil || err != nil {
		return err
	}
	open := c.counts[record.Open]
	if open == 0 {
		if c.counts[record.Cancelled] == 0 {
			res.Err = conflict("%s has ended already", named(op.ID, op.Tasks))
		}
		return nil
	}
	im.expires(t.key, op.ExpiresAt)
	err = c.update(s, res, "UPDATE jobhost.task SET status=3, token=token+1, ended_at=$4, expires_at=$5"+chosen+"AND status+0=0",
		int64(op.At), int64(op.ExpiresAt))
	if err != nil {
		return err
	}
	for i := range res.Tasks {
		res.Tasks[i].Token-- // the lease that was taken away
	}
	return im.move(s, t, record.StatusCounts{record.Open: -open, record.Cancelled: open}, res)
}

// revive opens the dead and cancelled tasks of a job.
func (b *batch) revive(tx *pgdb.Tx, op *record.Revive, res *record.OpResult) error {
	s := tx.Direct()
	if s == nil {
		return nil
	}
	t, err := b.image.find(s, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	c, err := t.choose(s, op.Tasks, res)
	if c == nil || err != nil {
		return err
	}
	dead, cancelled := c.counts[record.Dead], c.counts[record.Cancelled]
	if dead+cancelled == 0 {
		res.Err = conflict("%s has no dead or cancelled task", named(op.ID, op.Tasks))
		return nil
	}
	if err := c.revive(s, int64(op.At), res); err != nil {
		return err
	}
	return b.image.move(s, t, record.StatusCounts{record.Open: dead + cancelled, record.Dead: -dead, record.Cancelled: -cancelled}, res)
}

// revive opens the tasks of the choice, and marks their dead letters as revived.
func (c *choice) revive(s *pgdb.Session, at int64, res *record.OpResult) error {
	if c.counts[record.Dead] > 0 {
		keys := c.keys()
		_, err := s.Exec(`UPDATE jobhost.dead SET revived_at=$4
			WHERE task>=$1 AND task<$2 AND ($3::bigint[] IS NULL OR task=ANY($3)) AND revived_at=0`, keys.low, keys.high, c.only, at)
		if err != nil {
			return err
		}
	}
	return c.update(s, res, `UPDATE jobhost.task SET status=0, attempt=0, token=token+1, ready_at=$4, ended_at=0, expires_at=0, deadline=0`+
		chosen+"AND status+0>=2", at)
}

// named names the job or tasks that were to be changed.
func named(id string, indexes []int) string {
	if indexes == nil {
		return "job " + id
	}
	return fmt.Sprintf("job %s, asked for tasks %v,", id, indexes)
}

// move updates the sums after tasks of a job changed their status, and reports in res when none is open any more.
func (im *image) move(s *pgdb.Session, t *target, by record.StatusCounts, res *record.OpResult) error {
	for status, n := range by {
		if n != 0 {
			im.count(t.worker, record.Status(status), n)
		}
		t.counts[status] += n
	}
	if t.counts[record.Open] == 0 {
		res.JobEnded, res.Final = true, t.counts
	}
	if t.tasks == 1 {
		return nil
	}
	_, err := s.Exec("UPDATE jobhost.part SET open=$2, succeeded=$3, dead=$4, cancelled=$5 WHERE job=$1",
		t.key, t.counts[record.Open], t.counts[record.Succeeded], t.counts[record.Dead], t.counts[record.Cancelled])
	return err
}
