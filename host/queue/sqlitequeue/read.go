package sqlitequeue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Columns of a job; the second form leaves the payload where it is.
const (
	jobColumns = `seq, id, (SELECT name FROM worker WHERE worker.id=job.worker), tasks, priority, max_attempts,
		timeout_ns, created_at, ready_at, digest, entry, content_type, labels, length(payload), options, ref`
	selectJob     = "SELECT " + jobColumns + ", payload FROM job"
	selectJobHead = "SELECT " + jobColumns + " FROM job"
)

// scanJob returns the job that a statement with the columns above finds, nil
// when there is none.
func scanJob(s *sqlitedb.Stmt, payload bool) (*queue.JobRecord, error) {
	r, _, err := scanOptions(s, payload)
	return r, err
}

// scanOptions is scanJob that tells what else is kept of the job's options.
func scanOptions(s *sqlitedb.Stmt, payload bool) (*queue.JobRecord, *options, error) {
	if !s.Step() {
		return nil, nil, s.Done()
	}
	r := &queue.JobRecord{
		JobSpec: queue.JobSpec{
			Key:         queue.Key(s.ColInt(0)),
			ID:          s.ColText(1),
			Worker:      s.ColText(2),
			Tasks:       int(s.ColInt(3)),
			Priority:    jobhost.Priority(s.ColInt(4)),
			MaxAttempts: int(s.ColInt(5)),
			Timeout:     time.Duration(s.ColInt(6)),
			CreatedAt:   queue.Millis(s.ColInt(7)),
			ReadyAt:     queue.Millis(s.ColInt(8)),
			Entry:       s.ColText(10),
			ContentType: s.ColText(11),
			Ref:         s.ColText(15),
		},
		PayloadSize: int(s.ColInt(13)),
	}
	s.ColCopy(9, r.Digest[:])
	if payload {
		r.Payload = s.ColBlob(16)
	}
	labels, text := s.ColText(12), s.ColText(14)
	if err := s.Done(); err != nil {
		return nil, nil, err
	}
	o := new(options)
	if err := o.fill(text, &r.JobSpec); err != nil {
		return nil, nil, err
	}
	if o.ItemBytes != nil {
		r.PayloadSize = int(*o.ItemBytes)
	}
	if labels != "" {
		if err := json.Unmarshal([]byte(labels), &r.Labels); err != nil {
			return nil, nil, fmt.Errorf("labels of job %s: %w", r.ID, err)
		}
	}
	return r, o, nil
}

// readTasks fills in the tasks of a job and when it ended.
func readTasks(q sqlitedb.Querier, r *queue.JobRecord) error {
	tasks := make([]queue.TaskRecord, 0, r.JobSpec.Tasks)
	open := false
	s := q.Stmt(`SELECT seq, idx, status, attempt, ready_at, started_at, ended_at, result_size, fuel, retention_ms, ref, token
		FROM task WHERE seq>=? AND seq<? ORDER BY seq`).Int(int64(r.Key)).Int(int64(r.Key) + int64(r.JobSpec.Tasks))
	for s.Step() {
		t := queue.TaskRecord{
			Key:        queue.Key(s.ColInt(0)),
			Index:      int(s.ColInt(1)),
			Status:     queue.Status(s.ColInt(2)),
			Attempt:    int(s.ColInt(3)),
			ReadyAt:    queue.Millis(s.ColInt(4)),
			StartedAt:  queue.Millis(s.ColInt(5)),
			EndedAt:    queue.Millis(s.ColInt(6)),
			ResultSize: int(s.ColInt(7)),
			Fuel:       s.ColInt(8),
			ResultRef:  s.ColText(10),
			Token:      s.ColInt(11),
		}
		r.Retention = millis(s.ColInt(9))
		open = open || t.Status == queue.Open
		r.EndedAt = max(r.EndedAt, t.EndedAt)
		tasks = append(tasks, t)
	}
	if open {
		r.EndedAt = 0
	}
	r.Tasks = tasks
	return s.Done()
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Job implements [queue.Reader].
func (s *Store) Job(ctx context.Context, id string) (queue.JobRecord, error) {
	var record *queue.JobRecord
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) (err error) {
		record, err = scanJob(r.Stmt(selectJob+" WHERE id=?").Text(id), true)
		if err != nil {
			return err
		}
		if record == nil {
			return errNoJob(id)
		}
		if err := readTasks(r, record); err != nil {
			return err
		}
		if err := readParent(r, record); err != nil {
			return err
		}
		return readFailures(r, record)
	})
	if err != nil {
		return queue.JobRecord{}, fmt.Errorf("read job: %w", err)
	}
	return *record, nil
}

// readFailures fills in the failures of a job, oldest first.
func readFailures(q sqlitedb.Querier, r *queue.JobRecord) error {
	s := q.Stmt("SELECT record FROM failure WHERE task>=? AND task<? ORDER BY seq").
		Int(int64(r.Key)).Int(int64(r.Key) + int64(r.JobSpec.Tasks))
	for s.Step() {
		var f jobhost.Failure
		if err := json.Unmarshal(s.ColBlob(0), &f); err != nil {
			return fmt.Errorf("failure of job %s: %w", r.ID, err)
		}
		r.Failures = append(r.Failures, f)
	}
	return s.Done()
}

// Result implements [queue.Reader].
func (s *Store) Result(ctx context.Context, key queue.Key) ([]byte, error) {
	var data []byte
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(`SELECT result.data FROM task LEFT JOIN result ON result.task=task.seq
			WHERE task.seq=? AND task.status=1`).Int(int64(key))
		if st.Step() {
			data = append([]byte{}, st.ColBlob(0)...)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if data == nil {
		return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no result: the task has not succeeded"}
	}
	return data, nil
}

// Logs implements [queue.Reader].
func (s *Store) Logs(ctx context.Context, job queue.Key) ([]queue.LogRecord, error) {
	var logs []queue.LogRecord
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT tasks FROM job WHERE seq=?").Int(int64(job))
		if !st.Step() {
			return st.Done()
		}
		end := int64(job) + st.ColInt(0)
		if err := st.Done(); err != nil {
			return err
		}
		st = r.Stmt("SELECT idx, attempt, dropped, text FROM log WHERE task>=? AND task<? ORDER BY seq").
			Int(int64(job)).Int(end)
		for st.Step() {
			logs = append(logs, queue.LogRecord{
				Task: int(st.ColInt(0)), Attempt: int(st.ColInt(1)), Dropped: st.ColInt(2), Text: st.ColBlob(3),
			})
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	return logs, nil
}

// Counts implements [queue.Reader].
func (s *Store) Counts(ctx context.Context) (map[string]queue.StatusCounts, error) {
	counts := make(map[string]queue.StatusCounts)
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT name, status, n FROM counter JOIN worker ON worker.id=counter.worker WHERE n<>0")
		for st.Step() {
			c := counts[st.ColText(0)]
			c[st.ColInt(1)] = st.ColInt(2)
			counts[st.ColText(0)] = c
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	return counts, nil
}
