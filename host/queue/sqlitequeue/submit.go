package sqlitequeue

import (
	"bytes"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// submit adds a job with its tasks, or finds the one that is there.
func (l *ledger) submit(tx *sqlitedb.Tx, job *record.JobSpec, text texts, res *record.OpResult) error {
	if _, known := l.workers[job.Worker]; !known || job.Parent != nil || ownRef(job) != "" {
		// A submit that turns out to be a duplicate must not leave a worker
		// behind, nor does it need room among the children.
		if there, err := l.existing(tx, job, res); there || err != nil {
			return err
		}
		if err := checkRoom(tx, job.Parent, 1, res); err != nil || res.Err != nil {
			return err
		}
		if ownRef(job) != "" {
			if answered, err := l.checkRef(tx, job, res); answered || err != nil {
				return err
			}
		}
	}
	return l.insert(tx, job, text, res)
}

// insert adds a job with its tasks, unless one with its id is there.
func (l *ledger) insert(tx *sqlitedb.Tx, job *record.JobSpec, text texts, res *record.OpResult) error {
	worker, err := l.worker(tx, job.Worker)
	if err != nil {
		return err
	}
	if job.UniqueKey != "" {
		if there, err := l.taken(tx, job, worker, res); there || err != nil {
			return err
		}
	}
	key, tasks := l.next, int64(max(job.Tasks, 1))
	own := ownRef(job)
	sums := sumsOfJob(key, worker, job, text, own)
	err = tx.Stmt(`INSERT INTO job(seq, id, worker, tasks, priority, max_attempts, timeout_ns,
			created_at, ready_at, digest, entry, content_type, labels, options, ref, payload)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO NOTHING`).
		Int(key).Text(job.ID).Int(worker).Int(tasks).
		Int(int64(job.Priority)).Int(int64(job.MaxAttempts)).Int(int64(job.Timeout)).
		Int(int64(job.CreatedAt)).Int(int64(job.ReadyAt)).Blob(sums[:]).
		TextOrNull(job.Entry).TextOrNull(job.ContentType).TextOrNull(text.first).TextOrNull(text.options).TextOrNull(own).Blob(job.Payload).Exec()
	if err != nil {
		return err
	}
	if tx.Changes() == 0 {
		_, err := l.existing(tx, job, res)
		return err
	}
	l.next += tasks
	level, group := int64(job.Priority.Level()), int64(job.Group())
	for i := range tasks {
		err := tx.Stmt(`INSERT INTO task(seq, job, idx, tasks, worker, level, status, attempt, token,
				ready_at, started_at, ended_at, result_size, lane_group, deadline, retention_ms)
			VALUES(?,?,?,?,?,?,0,0,0,?,0,0,0,?,?,?)`).
			Int(key + i).Int(key).Int(i).Int(tasks).Int(worker).Int(level).Int(int64(job.ReadyAt)).Int(group).
			Int(int64(job.Deadline)).Int(job.Retention.Milliseconds()).Exec()
		if err != nil {
			return err
		}
	}
	if tasks > 1 {
		err := tx.Stmt("INSERT INTO part(job, open, succeeded, dead, cancelled) VALUES(?,?,0,0,0)").
			Int(key).Int(tasks).Exec()
		if err != nil {
			return err
		}
	}
	if err := l.accompany(tx, key, worker, job); err != nil {
		return err
	}
	l.count(worker, record.Open, tasks)
	l.created(key, job.CreatedAt)
	res.Key = record.Key(key)
	return nil
}

// accompany adds the rows that few jobs have beside their own and their tasks'.
func (l *ledger) accompany(tx *sqlitedb.Tx, key, worker int64, job *record.JobSpec) error {
	if err := addItems(tx, key, job.Items); err != nil {
		return err
	}
	if job.Parent != nil {
		if err := addChild(tx, key, job.Parent); err != nil {
			return err
		}
	}
	if len(job.Labels) > 0 || job.UniqueKey != "" || ownRef(job) != "" {
		return l.index(tx, key, worker, job)
	}
	return nil
}

// existing answers a submit whose id is taken.
func (l *ledger) existing(tx *sqlitedb.Tx, job *record.JobSpec, res *record.OpResult) (bool, error) {
	s := tx.Stmt("SELECT seq, digest FROM job WHERE id=?").Text(job.ID)
	if !s.Step() {
		return false, s.Done()
	}
	key, digest := s.ColInt(0), s.ColBlob(1)
	if err := s.Done(); err != nil {
		return false, err
	}
	switch {
	case len(digest) != len(job.Digest) && len(digest) != len(jobSums{}):
		res.Err = sqlitedb.Damaged("job %s", job.ID)
		return true, nil
	case len(digest) == len(job.Digest) && !bytes.Equal(digest, job.DigestBefore[:]),
		len(digest) != len(job.Digest) && !bytes.HasPrefix(digest, job.Digest[:]):
		res.Err = record.TakenID(job.ID)
		return true, nil
	}
	res.Key, res.Existing = record.Key(key), true
	return true, nil
}

// ownRef is the reference that goes with the job.
func ownRef(job *record.JobSpec) string {
	if job.Borrowed {
		return ""
	}
	return job.Ref
}
