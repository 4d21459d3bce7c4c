package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Claim implements [queue.Store]. It writes nothing: the process owns the file
// alone, so what is open is its own to run.
func (s *Store) Claim(ctx context.Context, worker string, after queue.Place, limit int) ([]queue.Claimed, error) {
	var claimed []queue.Claimed
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		id, err := workerID(r, worker)
		if id == 0 || err != nil || limit <= 0 {
			return err
		}
		open, err := counter(r, id, queue.Open)
		if err != nil {
			return err
		}
		claimed = make([]queue.Claimed, 0, min(int64(limit), open))
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
				claimed = append(claimed, queue.Claimed{
					Place:   queue.Place{Key: queue.Key(st.ColInt(0)), ReadyAt: queue.Millis(st.ColInt(1))},
					Level:   int(st.ColInt(2)),
					Token:   st.ColInt(3),
					Index:   int(st.ColInt(4)),
					Attempt: int(st.ColInt(5)),
					Group:   queue.Group(st.ColInt(6)),

					Deadline: queue.Millis(st.ColInt(7)),
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
func counter(q sqlitedb.Querier, worker int64, status queue.Status) (int64, error) {
	s := q.Stmt("SELECT n FROM counter WHERE worker=? AND status=?").Int(worker).Int(int64(status))
	var n int64
	if s.Step() {
		n = s.ColInt(0)
	}
	return n, s.Done()
}

// Load implements [queue.Store].
func (s *Store) Load(ctx context.Context, keys []queue.Key) ([]queue.Body, error) {
	bodies := make([]queue.Body, 0, len(keys))
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		jobs := make(map[int64]loaded, len(keys))
		for _, key := range keys {
			st := r.Stmt("SELECT job, idx, token, attempt, deadline, retention_ms, suspect FROM task WHERE seq=? AND status=0").Int(int64(key))
			if !st.Step() {
				if err := st.Done(); err != nil {
					return err
				}
				continue
			}
			id := st.ColInt(0)
			body := queue.Body{Key: key, Index: int(st.ColInt(1)), Token: st.ColInt(2), Attempt: int(st.ColInt(3))}
			body.Deadline = queue.Millis(st.ColInt(4))
			retention := millis(st.ColInt(5))
			body.Suspect = st.ColInt(6) != 0
			if err := st.Done(); err != nil {
				return err
			}
			job, there := jobs[id]
			if !there {
				var err error
				if job, err = load(r, id); err != nil {
					return fmt.Errorf("task %d: %w", key, err)
				}
				job.spec.Retention = retention
				jobs[id] = job
			}
			body.Job = job.spec
			if job.items {
				var err error
				if body.Payload, err = readItem(r, key); err != nil {
					return err
				}
			}
			bodies = append(bodies, body)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load tasks: %w", err)
	}
	return bodies, nil
}

// loaded is a job of which tasks are loaded.
type loaded struct {
	spec  *queue.JobSpec
	items bool // its tasks have payloads of their own
}

// load reads the job of a key, which must be there.
func load(r *sqlitedb.Reader, key int64) (loaded, error) {
	record, o, err := scanOptions(r.Stmt(selectJob+" WHERE seq=?").Int(key), true)
	switch {
	case err != nil:
		return loaded{}, err
	case record == nil:
		return loaded{}, fmt.Errorf("there is no job %d", key)
	}
	return loaded{&record.JobSpec, o.ItemBytes != nil}, nil
}
