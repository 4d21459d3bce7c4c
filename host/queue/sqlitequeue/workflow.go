package sqlitequeue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// workflowSchema keeps workflows. It is a schema of its own, so that the tables of
// the queue need not know of it.
//
//   - definition: what workflows run, each once; definition_use counts them, beside it so that a start
//     doesn't rewrite the text
//   - workflow: its key is taken from the same sequence as those of tasks. record decides
//     on its course; what people see of its steps is in workflow_step
//   - workflow_data: the input (slot -1), the output (slot -2), and signals
//   - workflow_job: its jobs, which are kept as long as it is
const workflowSchema = `
CREATE TABLE definition(
	id   INTEGER PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE,
	text BLOB NOT NULL
);
CREATE TABLE definition_use(
	definition INTEGER PRIMARY KEY,
	n          INTEGER NOT NULL
);
CREATE TABLE workflow(
	seq          INTEGER PRIMARY KEY,
	id           TEXT NOT NULL UNIQUE,
	name         TEXT NOT NULL,
	definition   INTEGER NOT NULL,
	status       INTEGER NOT NULL,
	digest       BLOB NOT NULL,
	depth        INTEGER NOT NULL,
	parent       INTEGER NOT NULL,
	parent_id    TEXT,
	parent_step  TEXT,
	parent_mark  TEXT,
	labels       TEXT,
	started_at   INTEGER NOT NULL,
	retention_ms INTEGER NOT NULL,
	ended_at     INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	ending       TEXT,
	record       BLOB
);
CREATE INDEX workflow_name ON workflow(name);
CREATE INDEX workflow_open ON workflow(status) WHERE status=0;
CREATE INDEX workflow_failed ON workflow(status) WHERE status=2;
CREATE INDEX workflow_parent ON workflow(parent) WHERE parent>0;
CREATE INDEX workflow_due ON workflow(expires_at) WHERE expires_at>0;
CREATE TABLE workflow_data(
	workflow INTEGER NOT NULL,
	slot     INTEGER NOT NULL,
	data     BLOB NOT NULL,
	PRIMARY KEY(workflow, slot)
) WITHOUT ROWID;
CREATE TABLE workflow_step(
	workflow   INTEGER NOT NULL,
	step       INTEGER NOT NULL,
	status     TEXT NOT NULL,
	number     INTEGER NOT NULL,
	fallback   INTEGER NOT NULL,
	reason     TEXT,
	tasks      INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	ended_at   INTEGER NOT NULL,
	failure    TEXT,
	PRIMARY KEY(workflow, step)
) WITHOUT ROWID;
CREATE TABLE workflow_job(
	workflow INTEGER NOT NULL,
	job      INTEGER NOT NULL,
	PRIMARY KEY(workflow, job)
) WITHOUT ROWID`

// workflowView implements [queue.WorkflowView].
type workflowView struct{ q sqlitedb.Querier }

const selectWorkflow = `SELECT seq, id, name, (SELECT hash FROM definition WHERE definition.id=workflow.definition), status, digest, depth,
	parent, parent_id, parent_step, parent_mark, labels, started_at, retention_ms, ended_at, expires_at, ending, record FROM workflow`

// scanWorkflow reads the row that a statement is at.
func scanWorkflow(s *sqlitedb.Stmt, record bool) (queue.WorkflowRecord, error) {
	w := queue.WorkflowRecord{
		Key: queue.Key(s.ColInt(0)), ID: s.ColText(1), Name: s.ColText(2), Definition: s.ColText(3),
		Status: queue.WorkflowStatus(s.ColInt(4)), Depth: int(s.ColInt(6)),
		Parent: queue.Key(s.ColInt(7)), ParentID: s.ColText(8), ParentStep: s.ColText(9), ParentMark: s.ColText(10),
		StartedAt: queue.Millis(s.ColInt(12)), Retention: millis(s.ColInt(13)),
		EndedAt: queue.Millis(s.ColInt(14)), ExpiresAt: queue.Millis(s.ColInt(15)),
	}
	s.ColCopy(5, w.Digest[:])
	if record {
		w.Record = s.ColBlob(17)
	}
	if labels := s.ColText(11); labels != "" {
		if err := json.Unmarshal([]byte(labels), &w.Labels); err != nil {
			return w, fmt.Errorf("labels of workflow %s: %w", w.ID, err)
		}
	}
	if text := s.ColText(16); text != "" {
		if err := json.Unmarshal([]byte(text), &w.Ending); err != nil {
			return w, fmt.Errorf("ending of workflow %s: %w", w.ID, err)
		}
	}
	return w, nil
}

func oneWorkflow(s *sqlitedb.Stmt) (*queue.WorkflowRecord, error) {
	if !s.Step() {
		return nil, s.Done()
	}
	w, err := scanWorkflow(s, true)
	if closed := s.Done(); closed != nil {
		return nil, closed
	}
	if err != nil || w.Status == queue.WorkflowRemoving {
		return nil, err
	}
	return &w, nil
}

// Workflow implements [queue.WorkflowView].
func (v workflowView) Workflow(key queue.Key) (*queue.WorkflowRecord, error) {
	return oneWorkflow(v.q.Stmt(selectWorkflow + " WHERE seq=?").Int(int64(key)))
}

// WorkflowByID implements [queue.WorkflowView].
func (v workflowView) WorkflowByID(id string) (*queue.WorkflowRecord, error) {
	return oneWorkflow(v.q.Stmt(selectWorkflow + " WHERE id=?").Text(id))
}

// WorkflowData implements [queue.WorkflowView].
func (v workflowView) WorkflowData(key queue.Key, slot int) ([]byte, error) {
	s := v.q.Stmt("SELECT data FROM workflow_data WHERE workflow=? AND slot=?").Int(int64(key)).Int(int64(slot))
	var data []byte
	if s.Step() {
		data = append([]byte{}, s.ColBlob(0)...)
	}
	return data, s.Done()
}

// WorkflowSteps implements [queue.WorkflowView].
func (v workflowView) WorkflowSteps(key queue.Key) ([]queue.StepRecord, error) {
	s := v.q.Stmt(`SELECT step, status, number, fallback, reason, tasks, started_at, ended_at, failure
		FROM workflow_step WHERE workflow=? ORDER BY step`).Int(int64(key))
	var steps []queue.StepRecord
	for s.Step() {
		r := queue.StepRecord{
			Step: int(s.ColInt(0)), Status: jobhost.StepStatus(s.ColText(1)), Number: uint32(s.ColInt(2)),
			Fallback: s.ColInt(3)&1 != 0, Worker: s.ColInt(3)&2 != 0, Reason: s.ColText(4), Tasks: int(s.ColInt(5)),
			StartedAt: queue.Millis(s.ColInt(6)), EndedAt: queue.Millis(s.ColInt(7)),
		}
		var err error
		if r.Failure, err = failureOf(s.ColText(8)); err != nil {
			_ = s.Done() // which has no error that matters more
			return nil, err
		}
		steps = append(steps, r)
	}
	return steps, s.Done()
}

func failureOf(text string) (*jobhost.Failure, error) {
	if text == "" {
		return nil, nil
	}
	f := new(jobhost.Failure)
	if err := json.Unmarshal([]byte(text), f); err != nil {
		return nil, fmt.Errorf("read a failure: %w", err)
	}
	return f, nil
}

// StepFailure implements [queue.WorkflowView].
func (v workflowView) StepFailure(key queue.Key, step int) (*jobhost.Failure, error) {
	return v.failure(v.q.Stmt("SELECT failure FROM workflow_step WHERE workflow=? AND step=?").Int(int64(key)).Int(int64(step)))
}

func (workflowView) failure(s *sqlitedb.Stmt) (*jobhost.Failure, error) {
	text := ""
	if s.Step() {
		text = s.ColText(0)
	}
	if err := s.Done(); err != nil {
		return nil, err
	}
	return failureOf(text)
}

// Definition implements [queue.WorkflowView].
func (v workflowView) Definition(hash string) ([]byte, error) {
	s := v.q.Stmt("SELECT text FROM definition WHERE hash=?").Text(hash)
	var text []byte
	if s.Step() {
		text = append([]byte{}, s.ColBlob(0)...)
	}
	return text, s.Done()
}

// JobOutput implements [queue.WorkflowView].
func (v workflowView) JobOutput(id string, most int) (*queue.JobOutput, error) {
	s := v.q.Stmt("SELECT seq, tasks FROM job WHERE id=?").Text(id)
	if !s.Step() {
		return nil, s.Done()
	}
	key, out := s.ColInt(0), &queue.JobOutput{Tasks: int(s.ColInt(1))}
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = v.q.Stmt("SELECT sum(result_size), max(ref) FROM task WHERE seq>=? AND seq<?").Int(key).Int(key + int64(out.Tasks))
	if s.Step() {
		out.Size, out.Ref = s.ColInt(0), s.ColText(1)
	}
	if err := s.Done(); err != nil || out.Ref != "" || out.Size > int64(most) {
		return out, err
	}
	s = v.q.Stmt(`SELECT result.data FROM task LEFT JOIN result ON result.task=task.seq
		WHERE task.seq>=? AND task.seq<? ORDER BY task.seq`).Int(key).Int(key + int64(out.Tasks))
	for s.Step() {
		out.Results = append(out.Results, s.ColBlob(0))
	}
	return out, s.Done()
}

// JobFailure implements [queue.WorkflowView].
func (v workflowView) JobFailure(id string) (*jobhost.Failure, error) {
	s := v.q.Stmt("SELECT seq, tasks FROM job WHERE id=?").Text(id)
	if !s.Step() {
		return nil, s.Done()
	}
	low, high := s.ColInt(0), s.ColInt(0)+s.ColInt(1)
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = v.q.Stmt("SELECT seq FROM task WHERE seq>=? AND seq<? AND status=2 ORDER BY seq LIMIT 1").Int(low).Int(high)
	if !s.Step() {
		return nil, s.Done()
	}
	task := s.ColInt(0)
	if err := s.Done(); err != nil {
		return nil, err
	}
	return v.failure(v.q.Stmt("SELECT record FROM failure WHERE task=? ORDER BY seq DESC LIMIT 1").Int(task))
}

// ViewWorkflows implements [queue.WorkflowReader].
func (s *Store) ViewWorkflows(ctx context.Context, f func(queue.WorkflowView) error) error {
	return s.db.Read(ctx, func(r *sqlitedb.Reader) error { return f(workflowView{r}) })
}

// Workflows implements [queue.WorkflowReader].
func (s *Store) Workflows(ctx context.Context, q queue.WorkflowQuery) ([]queue.WorkflowRecord, error) {
	var list []queue.WorkflowRecord
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		sql, args, err := listWorkflows(r, &q)
		if err != nil || sql == "" {
			return err
		}
		st := r.Stmt(sql)
		for _, arg := range args {
			arg(st)
		}
		for st.Step() {
			w, err := scanWorkflow(st, false)
			if err != nil {
				_ = st.Done() // which has no error that matters more
				return err
			}
			list = append(list, w)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return list, nil
}

// listWorkflows returns the statement of a list; empty = there is nothing to be listed.
func listWorkflows(r sqlitedb.Querier, q *queue.WorkflowQuery) (string, []func(*sqlitedb.Stmt), error) {
	sql := selectWorkflow + " WHERE status<>4"
	var args []func(*sqlitedb.Stmt)
	number := func(where string, n int64) {
		sql += where
		args = append(args, func(s *sqlitedb.Stmt) { s.Int(n) })
	}
	if q.Parent != "" {
		s := r.Stmt("SELECT seq FROM workflow WHERE id=?").Text(q.Parent)
		if !s.Step() {
			return "", nil, s.Done()
		}
		parent := s.ColInt(0)
		if err := s.Done(); err != nil {
			return "", nil, err
		}
		number(" AND parent>0 AND parent=?", parent) // or its index can't be used
	}
	if q.Name != "" {
		sql += " AND name=?"
		args = append(args, func(s *sqlitedb.Stmt) { s.Text(q.Name) })
	}
	if q.Status != nil {
		// Written out, so that the indexes of a few statuses can be used.
		sql += fmt.Sprintf(" AND status=%d", *q.Status)
	}
	if q.After != 0 {
		number(" AND started_at>=?", int64(q.After))
	}
	if q.Before != 0 {
		number(" AND started_at<?", int64(q.Before))
	}
	if q.Below != 0 {
		number(" AND seq<?", int64(q.Below))
	}
	number(" ORDER BY seq DESC LIMIT ?", int64(q.Limit))
	return sql, args, nil
}

// OpenWorkflows implements [queue.WorkflowReader].
func (s *Store) OpenWorkflows(ctx context.Context) (map[string]int64, error) {
	open := map[string]int64{}
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT name, count(*) FROM workflow INDEXED BY workflow_open WHERE status=0 GROUP BY name")
		for st.Step() {
			open[st.ColText(0)] = st.ColInt(1)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("count workflows: %w", err)
	}
	return open, nil
}

// OpenDefinitions implements [queue.WorkflowReader].
func (s *Store) OpenDefinitions(ctx context.Context) (map[string][]byte, error) {
	texts := map[string][]byte{}
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(`SELECT hash, text FROM definition
			WHERE id IN (SELECT definition FROM workflow INDEXED BY workflow_open WHERE status=0)`)
		for st.Step() {
			texts[st.ColText(0)] = append([]byte{}, st.ColBlob(1)...)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return texts, nil
}
