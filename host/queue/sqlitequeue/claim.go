package sqlitequeue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Claim implements [record.Store]. It writes nothing: the process owns the file
// alone, so what is open is its own to run.
func (s *Store) Claim(ctx context.Context, worker string, after record.Place, limit int) ([]record.Claimed, error) {
	var claimed []record.Claimed
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		id, err := workerID(r, worker)
		if id == 0 || err != nil || limit <= 0 {
			return err
		}
		open, err := counter(r, id, record.Open)
		if err != nil {
			return err
		}
		claimed = make([]record.Claimed, 0, min(int64(limit), open))
		// Two halves instead of a comparison of pairs: that would read all
		// tasks of one time to find those after a key.
		for _, part := range []struct {
			sql  string
			args [2]int64
		}{
			{claimSameTime, [2]int64{int64(after.ReadyAt), int64(after.Key)}},
			{claimLater, [2]int64{int64(after.ReadyAt), 0}},
		} {
			st := r.Stmt(part.sql).Int(id).Int(part.args[0]).Int(part.args[1]).Int(int64(limit - len(claimed)))
			for st.Step() {
				claimed = append(claimed, record.Claimed{
					Place:   record.Place{Key: record.Key(st.ColInt(0)), ReadyAt: record.Millis(st.ColInt(1))},
					Level:   int(st.ColInt(2)),
					Token:   st.ColInt(3),
					Index:   int(st.ColInt(4)),
					Attempt: int(st.ColInt(5)),
					Group:   record.Group(st.ColInt(6)),

					Deadline: record.Millis(st.ColInt(7)),
				})
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claimed, nil
}

const (
	claimSameTime = `SELECT seq, ready_at, level, token, idx, attempt, lane_group, deadline FROM task INDEXED BY task_open
		WHERE worker=? AND status=0 AND ready_at=? AND seq>? ORDER BY seq LIMIT ?`
	claimLater = `SELECT seq, ready_at, level, token, idx, attempt, lane_group, deadline FROM task INDEXED BY task_open
		WHERE worker=? AND status=0 AND ready_at>? AND seq>? ORDER BY ready_at, seq LIMIT ?`
)

// workerID returns the number of a worker, 0 when it never had a job.
func workerID(q sqlitedb.Querier, name string) (int64, error) {
	s := q.Stmt("SELECT id FROM worker WHERE name=?").Text(name)
	var id int64
	if s.Step() {
		id = s.ColInt(0)
	}
	return id, s.Done()
}

// counter returns the number of a worker's tasks with a status.
func counter(q sqlitedb.Querier, worker int64, status record.Status) (int64, error) {
	s := q.Stmt("SELECT n FROM counter WHERE worker=? AND status=?").Int(worker).Int(int64(status))
	var n int64
	if s.Step() {
		n = s.ColInt(0)
	}
	return n, s.Done()
}

// Load implements [record.Store].
func (s *Store) Load(ctx context.Context, keys []record.Key) ([]record.Body, error) {
	bodies, err := s.load(ctx, keys)
	if sqlitedb.IsDamaged(err) {
		bodies, err = s.loadAround(ctx, keys)
	}
	if err != nil {
		return bodies, fmt.Errorf("load tasks: %w", err)
	}
	return bodies, nil
}

// load reads bodies in one transaction.
func (s *Store) load(ctx context.Context, keys []record.Key) ([]record.Body, error) {
	bodies := make([]record.Body, 0, len(keys))
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		jobs := make(map[int64]loaded, len(keys))
		for _, key := range keys {
			body, id, err := loadTask(r, key)
			if err != nil {
				return err
			}
			if id == 0 {
				continue
			}
			job, there := jobs[id]
			if !there {
				if job, err = load(r, id, body.Job.Retention); err != nil {
					return fmt.Errorf("task %d: %w", key, err)
				}
				jobs[id] = job
			}
			body.Job, body.Damage = job.spec, job.damage
			if job.items {
				var whole bool
				if body.Payload, whole, err = readItem(r, key); err != nil {
					return err
				}
				if !whole {
					body.Payload, body.Damage = []byte{}, sqlitedb.Damaged("the payload of task %d of job %s", body.Index, job.spec.ID)
				}
			}
			bodies = append(bodies, body)
		}
		return nil
	})
	return bodies, err
}

// loadTask reads the task's own part of its body, and the key of its job: 0 =
// there is no such open task.
func loadTask(r *sqlitedb.Reader, key record.Key) (body record.Body, job int64, err error) {
	s := r.Stmt("SELECT job, idx, token, attempt, deadline, retention_ms, suspect FROM task WHERE seq=? AND status=0").Int(int64(key))
	if !s.Step() {
		return body, 0, s.Done()
	}
	job = s.ColInt(0)
	body = record.Body{
		Key: key, Index: int(s.ColInt(1)), Token: s.ColInt(2), Attempt: int(s.ColInt(3)), Deadline: record.Millis(s.ColInt(4)),
		Suspect: s.ColInt(6) != 0, Job: &record.JobSpec{Retention: millis(s.ColInt(5))},
	}
	if !isTask(int64(key), job, int64(body.Index)) {
		err = sqlitedb.Damaged("task %d", key)
	}
	return body, job, errors.Join(s.Done(), err)
}

// loaded is a job whose tasks are being loaded.
type loaded struct {
	spec   *record.JobSpec
	items  bool  // its tasks have payloads of their own
	damage error // of its payload
}

// load reads the job of a key, which must be there.
func load(r *sqlitedb.Reader, key int64, retention time.Duration) (loaded, error) {
	stored, items, err := scanItems(r.Stmt(selectJob+" WHERE seq=?").Int(key), true)
	switch {
	case err != nil:
		return loaded{}, err
	case stored == nil:
		return loaded{}, sqlitedb.Damaged("the job of task %d, which is not there,", key)
	}
	stored.JobSpec.Retention = retention
	return loaded{&stored.JobSpec, items, stored.Damage}, nil
}

// loadAround reads bodies each for itself: what is damaged of one must not keep the
// others from running. A task whose job can't be read has a body that says so. One
// that can't be read itself is an error if it is the first, which is wanted now,
// and left out otherwise.
func (s *Store) loadAround(ctx context.Context, keys []record.Key) ([]record.Body, error) {
	bodies := make([]record.Body, 0, len(keys))
	for i, key := range keys {
		one, err := s.load(ctx, []record.Key{key})
		if sqlitedb.IsDamaged(err) {
			one, err = s.loadDamaged(ctx, key, err)
		}
		switch {
		case err == nil:
			bodies = append(bodies, one...)
		case i == 0 || !sqlitedb.IsDamaged(err):
			return bodies, err
		}
	}
	return bodies, nil
}

// loadDamaged returns the body of a task without what is damaged.
func (s *Store) loadDamaged(ctx context.Context, key record.Key, damage error) (bodies []record.Body, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		body, job, err := loadTask(r, key)
		if err != nil || job == 0 {
			return err
		}
		body.Damage = damage
		body.Job.Key = record.Key(job)
		st := r.Stmt("SELECT job.id, name, task.tasks FROM task JOIN job ON job.seq=task.job JOIN worker ON worker.id=task.worker WHERE task.seq=?").
			Int(int64(key))
		if st.Step() {
			body.Job.ID, body.Job.Worker, body.Job.Tasks = st.ColText(0), st.ColText(1), int(st.ColInt(2))
		}
		if err := st.Done(); err != nil {
			return err
		}
		if body.Job.Origin, err = originOf(r, body.Job.ID, job); err != nil {
			return err
		}
		bodies = append(bodies, body)
		return nil
	})
	return bodies, err
}

// originOf returns the workflow that a job is for, without the step and the mark, which
// are in options that can't be read: the workflow waits for it. Its id begins with the
// workflow's and a dot. Nil = it is for none.
func originOf(r *sqlitedb.Reader, id string, job int64) (origin *record.Origin, err error) {
	for end := strings.LastIndexByte(id, '.'); end > 0 && origin == nil; end = strings.LastIndexByte(id[:end], '.') {
		s := r.Stmt("SELECT seq FROM workflow WHERE id=? AND EXISTS(SELECT 1 FROM workflow_job WHERE workflow=workflow.seq AND job=?)").
			Text(id[:end]).Int(job)
		if s.Step() {
			origin = &record.Origin{Workflow: record.Key(s.ColInt(0)), ID: id[:end]}
		}
		if err := s.Done(); err != nil {
			return nil, err
		}
	}
	return origin, nil
}
