package sqlitequeue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Columns of a job; the second form leaves the payload where it is.
const (
	jobColumns = `seq, id, (SELECT name FROM worker WHERE worker.id=job.worker), tasks, priority, max_attempts,
		timeout_ns, created_at, ready_at, digest, entry, content_type, labels, length(payload), options, ref,
		worker`
	selectJob     = "SELECT " + jobColumns + ", payload FROM job"
	selectJobHead = "SELECT " + jobColumns + " FROM job"
)

// scanJob returns the job that a statement with the columns above finds, nil
// when there is none.
func scanJob(s *sqlitedb.Stmt, payload bool) (*record.JobRecord, error) {
	r, _, err := scanOptions(s, payload)
	return r, err
}

// scanOptions is scanJob that also returns what else is kept of the job's options. A
// payload that is damaged is none, and the record says so.
func scanOptions(s *sqlitedb.Stmt, payload bool) (*record.JobRecord, *options, error) {
	if !s.Step() {
		return nil, nil, s.Done()
	}
	r := &record.JobRecord{
		JobSpec: record.JobSpec{
			Key:         record.Key(s.ColInt(0)),
			ID:          s.ColText(1),
			Worker:      s.ColText(2),
			Tasks:       int(s.ColInt(3)),
			Priority:    jobhost.Priority(s.ColInt(4)),
			MaxAttempts: int(s.ColInt(5)),
			Timeout:     time.Duration(s.ColInt(6)),
			CreatedAt:   record.Millis(s.ColInt(7)),
			ReadyAt:     record.Millis(s.ColInt(8)),
			Entry:       s.ColText(10),
			ContentType: s.ColText(11),
			Ref:         s.ColText(15),
		},
		PayloadSize: int(s.ColInt(13)),
	}
	labels, text := s.ColText(12), s.ColText(14)
	if payload {
		r.Payload = s.ColBlob(17)
	}
	var sums jobSums
	n := s.ColCopy(9, sums[:])
	if n == len(r.DigestBefore) {
		copy(r.DigestBefore[:], sums[:])
	} else {
		copy(r.Digest[:], sums[:])
	}
	var damage error
	if damage, r.Damage = sums.check(n, s.ColInt(0), s.ColInt(16), &r.JobSpec, texts{labels, text}, payload); r.Damage != nil {
		r.Payload = nil
	}
	if err := errors.Join(s.Done(), damage); err != nil {
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
func readTasks(q sqlitedb.Querier, r *record.JobRecord) error {
	tasks := make([]record.TaskRecord, 0, r.JobSpec.Tasks)
	open := false
	s := q.Stmt(`SELECT seq, idx, status, attempt, ready_at, started_at, ended_at, result_size, fuel, retention_ms, ref, token, job
		FROM task WHERE seq>=? AND seq<? ORDER BY seq`).Int(int64(r.Key)).Int(int64(r.Key) + int64(r.JobSpec.Tasks))
	for s.Step() {
		t := record.TaskRecord{
			Key:        record.Key(s.ColInt(0)),
			Index:      int(s.ColInt(1)),
			Status:     record.Status(s.ColInt(2)),
			Attempt:    int(s.ColInt(3)),
			ReadyAt:    record.Millis(s.ColInt(4)),
			StartedAt:  record.Millis(s.ColInt(5)),
			EndedAt:    record.Millis(s.ColInt(6)),
			ResultSize: int(s.ColInt(7)),
			Fuel:       s.ColInt(8),
			ResultRef:  s.ColText(10),
			Token:      s.ColInt(11),
		}
		if !isTask(s.ColInt(0), s.ColInt(12), s.ColInt(1)) || s.ColInt(12) != int64(r.Key) {
			return sqlitedb.Damaged("task %d of job %s", len(tasks), r.ID)
		}
		r.Retention = millis(s.ColInt(9))
		open = open || t.Status == record.Open
		r.EndedAt = max(r.EndedAt, t.EndedAt)
		tasks = append(tasks, t)
	}
	if err := s.Done(); err != nil {
		return err
	}
	if len(tasks) != r.JobSpec.Tasks {
		return sqlitedb.Damaged("the list of the tasks of job %s", r.ID)
	}
	if open {
		r.EndedAt = 0
	}
	r.Tasks = tasks
	return nil
}

// isTask reports whether a row can be that of a task. Its columns change one at a
// time, so it has no checksum, but its key, the job's and its index belong together.
func isTask(key, job, index int64) bool { return job > 0 && index >= 0 && key == job+index }

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Job implements [queue.Reader].
func (s *Store) Job(ctx context.Context, id string) (record.JobRecord, error) {
	stored, err := s.job(ctx, id, true)
	if sqlitedb.IsDamaged(err) { // it may be a page of the payload, and the rest can be read
		if head, again := s.job(ctx, id, false); again == nil {
			head.Damage = sqlitedb.Damaged("the payload of job %s", id)
			stored, err = head, nil
		}
	}
	if err != nil {
		return record.JobRecord{}, fmt.Errorf("read job: %w", err)
	}
	return *stored, nil
}

// job reads a job, with or without its payload.
func (s *Store) job(ctx context.Context, id string, payload bool) (stored *record.JobRecord, err error) {
	sql := selectJobHead + " WHERE id=?"
	if payload {
		sql = selectJob + " WHERE id=?"
	}
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) (err error) {
		stored, err = scanJob(r.Stmt(sql).Text(id), payload)
		if err != nil {
			return err
		}
		if stored == nil {
			return errNoJob(id)
		}
		if err := readTasks(r, stored); err != nil {
			return err
		}
		if err := readParent(r, stored); err != nil {
			return err
		}
		return readFailures(r, stored)
	})
	return stored, err
}

// readFailures fills in the failures of a job, oldest first.
func readFailures(q sqlitedb.Querier, r *record.JobRecord) error {
	s := q.Stmt("SELECT record, sum, task FROM failure WHERE task>=? AND task<? ORDER BY seq").
		Int(int64(r.Key)).Int(int64(r.Key) + int64(r.JobSpec.Tasks))
	for s.Step() {
		f, err := scanFailure(s, int64(r.Key))
		if err != nil {
			return fmt.Errorf("failure of job %s: %w", r.ID, err)
		}
		r.Failures = append(r.Failures, *f)
	}
	return s.Done()
}

// scanFailure returns the error record of a row with the columns record, sum and
// task. One that is damaged gives way to one that says so: the rest of the job is right.
func scanFailure(s *sqlitedb.Stmt, job int64) (*jobhost.Failure, error) {
	text := s.ColText(0)
	if !s.ColSum(1, textSum("failure", s.ColInt(2), text)) {
		return lostRecord(int(s.ColInt(2)-job), 0), nil
	}
	return failureOf(text)
}

// lostRecord stands for an error record that is damaged.
func lostRecord(task, attempt int) *jobhost.Failure {
	return &jobhost.Failure{
		Code: jobhost.FailDamaged, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical,
		Message: "the error record is damaged: it is not what was written", Task: task, Attempt: attempt,
	}
}

// Result implements [queue.Reader].
func (s *Store) Result(ctx context.Context, key record.Key) ([]byte, error) {
	var data []byte
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(selectResult + " WHERE task.seq=? AND task.status=1").Int(int64(key))
		if st.Step() {
			row, err := scanResult(st)
			if err != nil {
				return err
			}
			data = append([]byte{}, row.Data...)
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

// selectResult selects tasks with what they returned.
const selectResult = `SELECT task.seq, task.job, task.idx, result_size, task.ref, result.data, result.sum,
	(SELECT id FROM job WHERE job.seq=task.job) FROM task LEFT JOIN result ON result.task=task.seq`

// scanResult returns the result of a task that has succeeded. Its data are not nil,
// unless it is elsewhere.
func scanResult(s *sqlitedb.Stmt) (record.ResultRecord, error) {
	key := s.ColInt(0)
	r := record.ResultRecord{Index: int(s.ColInt(2)), Size: int(s.ColInt(3)), Ref: s.ColText(4)}
	if r.Ref != "" {
		return r, nil
	}
	r.Data = append([]byte{}, s.ColBlob(5)...)
	if len(r.Data) != r.Size || !s.ColSum(6, contentSum("result", key, r.Data)) || !isTask(key, s.ColInt(1), s.ColInt(2)) {
		return r, sqlitedb.Damaged("the result of task %d of job %s", r.Index, s.ColText(7))
	}
	return r, nil
}

// Results implements [queue.Reader].
func (s *Store) Results(ctx context.Context, job record.Key, from, limit, most int) (results []record.ResultRecord, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT tasks FROM job WHERE seq=?").Int(int64(job))
		if !st.Step() {
			return st.Done()
		}
		end := int64(job) + st.ColInt(0)
		if err := st.Done(); err != nil {
			return err
		}
		st = r.Stmt(selectResult + " WHERE task.seq>=? AND task.seq<? AND task.status=1 ORDER BY task.seq LIMIT ?").
			Int(int64(job) + int64(from)).Int(end).Int(int64(limit))
		for room := most; st.Step(); {
			row, err := scanResult(st)
			if err != nil {
				return err
			}
			if room -= len(row.Data); room < 0 && len(results) > 0 {
				break
			}
			results = append(results, row)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return results, nil
}

// Logs implements [queue.Reader].
func (s *Store) Logs(ctx context.Context, job record.Key) ([]record.LogRecord, error) {
	var logs []record.LogRecord
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT tasks, id FROM job WHERE seq=?").Int(int64(job))
		if !st.Step() {
			return st.Done()
		}
		end, id := int64(job)+st.ColInt(0), st.ColText(1)
		if err := st.Done(); err != nil {
			return err
		}
		st = r.Stmt("SELECT idx, attempt, dropped, text, sum, task FROM log WHERE task>=? AND task<? ORDER BY seq").
			Int(int64(job)).Int(end)
		for st.Step() {
			l := record.LogRecord{Task: int(st.ColInt(0)), Attempt: int(st.ColInt(1)), Dropped: st.ColInt(2), Text: st.ColBlob(3)}
			if !st.ColSum(4, logSum(st.ColInt(5), st.ColInt(0), st.ColInt(1), st.ColInt(2), l.Text)) {
				return sqlitedb.Damaged("the log of attempt %d of task %d of job %s", l.Attempt, l.Task, id)
			}
			logs = append(logs, l)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	return logs, nil
}

// Counts implements [queue.Reader].
func (s *Store) Counts(ctx context.Context) (map[string]record.StatusCounts, error) {
	counts := make(map[string]record.StatusCounts)
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
