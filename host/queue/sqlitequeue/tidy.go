package sqlitequeue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// tidyLooks is how many jobs one operation looks at, which costs it one or two
// milliseconds.
const tidyLooks = 4096

// tidy removes what is over, block by block, those first that are due longest.
func (l *ledger) tidy(tx *sqlitedb.Tx, op *record.Tidy, res *record.OpResult) error {
	if err := l.writeSpans(tx); err != nil { // of what began and ended before in this transaction
		return err
	}
	looked, visited := 0, false
	for looked < tidyLooks && res.Removed < int64(op.Limit) {
		s := tx.Stmt("SELECT block FROM span WHERE due>0 AND due<=? ORDER BY due LIMIT 1").Int(int64(op.At))
		if !s.Step() {
			if err := s.Done(); err != nil {
				return err
			}
			break
		}
		v := &visit{block: s.ColInt(0), at: int64(op.At), room: int64(op.Limit) - res.Removed}
		if err := s.Done(); err != nil {
			return err
		}
		if err := l.visit(tx, v, op.Lag.Milliseconds()); err != nil {
			return err
		}
		res.Removed += v.removed
		looked, visited = looked+v.looked, true
	}
	left, err := l.tidyWorkflows(tx, op, res)
	if err != nil {
		return err
	}
	if err := tellGone(tx, res); err != nil {
		return err
	}
	visited = visited || left
	if !visited {
		err := tx.Stmt("DELETE FROM death WHERE hour<?").Int(int64(op.At) - deathMemory.Milliseconds()).Exec()
		if err != nil {
			return err
		}
	}
	more := visited
	if !more {
		more, err = tx.Shrink(int64(op.Limit))
	}
	if more || err != nil {
		res.Next = op.At
		return err
	}
	s := tx.Stmt("SELECT min(due) FROM (SELECT min(due) AS due FROM span WHERE due>0 UNION ALL SELECT min(expires_at) FROM workflow WHERE expires_at>0)")
	if s.Step() {
		res.Next = record.Millis(s.ColInt(0))
	}
	return s.Done()
}

// visit is a look at the jobs whose keys are in a block.
type visit struct {
	block, at int64
	room      int64 // tasks that may be removed
	removed   int64
	looked    int
	full      bool  // there was more to remove
	next      int64 // earliest end of what stays, 0 = none
	stays     bool  // there is a job that does

	low, high int64 // keys to be deleted, in a row
}

// visit removes what is over in a block and notes when to look again.
func (l *ledger) visit(tx *sqlitedb.Tx, v *visit, lag int64) error {
	jobs, err := v.jobs(tx)
	if err != nil {
		return err
	}
	v.looked = len(jobs)
	for i := range jobs {
		if err := l.judge(tx, v, &jobs[i]); err != nil {
			return err
		}
	}
	if v.high > v.low {
		if err := l.deleteRange(tx, v.low, v.high); err != nil {
			return err
		}
	}
	switch {
	case v.full:
		return nil // it stays due
	case !v.stays && v.block < blockOf(l.next):
		return tx.Stmt("DELETE FROM span WHERE block=?").Int(v.block).Exec()
	case v.next != 0:
		v.next = max(v.next, v.at+lag)
	}
	return tx.Stmt("UPDATE span SET due=? WHERE block=?").Int(v.next).Int(v.block).Exec()
}

// ended is what decides about a job.
type ended struct {
	key, tasks, worker, status int64
	expires                    int64 // 0 = it stays, for now or forever
}

// jobs returns the jobs of the block; of those with several tasks without what
// decides.
func (v *visit) jobs(tx *sqlitedb.Tx) ([]ended, error) {
	s := tx.Stmt("SELECT seq, tasks, worker, status, expires_at FROM task WHERE seq>=? AND seq<? AND idx=0").
		Int(v.block << 10).Int(blockEnd(v.block))
	var jobs []ended
	for s.Step() {
		jobs = append(jobs, ended{s.ColInt(0), s.ColInt(1), s.ColInt(2), s.ColInt(3), s.ColInt(4)})
	}
	return jobs, s.Done()
}

// judge removes a job, or notes that it stays. Jobs in a row are deleted together.
func (l *ledger) judge(tx *sqlitedb.Tx, v *visit, job *ended) error {
	counts := record.StatusCounts{}
	if job.tasks == 1 {
		counts[job.status] = 1
	} else if err := job.add(tx, &counts); err != nil {
		return err
	}
	switch {
	case counts[record.Open] > 0 || job.expires == 0:
		v.stays = true
		return nil
	case job.expires > v.at:
		v.stays = true
		if v.next == 0 || job.expires < v.next {
			v.next = job.expires
		}
		return nil
	case v.removed >= v.room:
		v.full = true
		return nil
	}
	if job.key != v.high {
		if v.high > v.low {
			if err := l.deleteRange(tx, v.low, v.high); err != nil {
				return err
			}
		}
		v.low = job.key
	}
	v.high = job.key + job.tasks
	v.removed += job.tasks
	for status, n := range counts {
		if n != 0 {
			l.count(job.worker, record.Status(status), -n)
		}
	}
	return nil
}

// add adds up the tasks of a job: it is over when the last of them is.
func (job *ended) add(tx *sqlitedb.Tx, counts *record.StatusCounts) error {
	s := tx.Stmt("SELECT status, count(*), min(expires_at), max(expires_at) FROM task WHERE seq>=? AND seq<? GROUP BY status").
		Int(job.key).Int(job.key + job.tasks)
	job.expires = 0
	forever := false
	for s.Step() {
		counts[s.ColInt(0)] = s.ColInt(1)
		forever = forever || s.ColInt(2) == 0
		job.expires = max(job.expires, s.ColInt(3))
	}
	if forever {
		job.expires = 0
	}
	return s.Done()
}

// evict removes the oldest jobs with dead tasks of a worker that has more than
// most, but not the one given, nor jobs that are still open.
func (l *ledger) evict(tx *sqlitedb.Tx, worker, except, most int64, res *record.OpResult) error {
	n, err := counter(tx, worker, record.Dead)
	if err != nil {
		return err
	}
	n += l.deltas[worker][record.Dead]
	after := l.evicting[worker]
	for looked := 0; n > most && looked < evictLooks; looked++ {
		s := tx.Stmt(`SELECT task.job, job.id FROM task INDEXED BY task_list JOIN job ON job.seq=task.job
			WHERE task.worker=? AND task.status=2 AND task.seq>=? ORDER BY task.seq LIMIT 1`).Int(worker).Int(after)
		if !s.Step() {
			delete(l.evicting, worker)
			return s.Done()
		}
		key, id := s.ColInt(0), s.ColText(1)
		if err := s.Done(); err != nil {
			return err
		}
		t, err := find(tx, id, &record.OpResult{})
		if err != nil {
			return err
		}
		after = t.end()
		if key == except || t.counts[record.Open] > 0 {
			continue
		}
		step := &record.OpResult{}
		if err := isStep(tx, t, id, step); err != nil {
			return err
		}
		if step.Err != nil {
			if len(res.Evicted) == 0 {
				l.evicting[worker] = after // or those would be all that is ever looked at
			}
			continue
		}
		if err := l.remove(tx, t); err != nil {
			return err
		}
		n -= t.counts[record.Dead]
		res.Removed += t.tasks
		res.Evicted = append(res.Evicted, id)
	}
	return nil
}

// evictLooks bounds the work of one eviction: a bound that was lowered takes
// hold with the next deaths.
const evictLooks = 32
