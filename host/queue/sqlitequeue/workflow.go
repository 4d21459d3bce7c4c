package sqlitequeue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
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

// workflowView implements [record.WorkflowView].
type workflowView struct{ q sqlitedb.Querier }

const selectWorkflow = `SELECT seq, id, name, (SELECT hash FROM definition WHERE definition.id=workflow.definition), status, digest, depth,
	parent, parent_id, parent_step, parent_mark, labels, started_at, retention_ms, ended_at, expires_at, ending, record, sum FROM workflow`

// scanWorkflow reads the row that a statement is at. One that is damaged comes with
// its error, as it is but for its record.
func scanWorkflow(s *sqlitedb.Stmt, stored bool) (record.WorkflowRecord, error) {
	w := record.WorkflowRecord{
		Key: record.Key(s.ColInt(0)), ID: s.ColText(1), Name: s.ColText(2), Definition: s.ColText(3),
		Status: record.WorkflowStatus(s.ColInt(4)), Depth: int(s.ColInt(6)),
		Parent: record.Key(s.ColInt(7)), ParentID: s.ColText(8), ParentStep: s.ColText(9), ParentMark: s.ColText(10),
		StartedAt: record.Millis(s.ColInt(12)), Retention: millis(s.ColInt(13)),
		EndedAt: record.Millis(s.ColInt(14)), ExpiresAt: record.Millis(s.ColInt(15)),
	}
	s.ColCopy(5, w.Digest[:])
	w.Record = s.ColBlob(17)
	if labels := s.ColText(11); labels != "" {
		if err := json.Unmarshal([]byte(labels), &w.Labels); err != nil {
			return w, fmt.Errorf("labels of workflow %s: %w", w.ID, err)
		}
	}
	ending := s.ColText(16)
	if !s.ColSum(18, workflowSum(&w, ending)) {
		w.Record = nil
		return w, sqlitedb.Damaged("workflow %s", w.ID)
	}
	if !stored {
		w.Record = nil
	}
	if ending != "" {
		if err := json.Unmarshal([]byte(ending), &w.Ending); err != nil {
			return w, fmt.Errorf("ending of workflow %s: %w", w.ID, err)
		}
	}
	return w, nil
}

func oneWorkflow(s *sqlitedb.Stmt) (*record.WorkflowRecord, error) {
	if !s.Step() {
		return nil, s.Done()
	}
	w, err := scanWorkflow(s, true)
	if closed := s.Done(); closed != nil {
		return nil, closed
	}
	if w.Status == record.WorkflowRemoving {
		return nil, nil
	}
	return &w, err
}

// Workflow implements [record.WorkflowView].
func (v workflowView) Workflow(key record.Key) (*record.WorkflowRecord, error) {
	return oneWorkflow(v.q.Stmt(selectWorkflow + " WHERE seq=?").Int(int64(key)))
}

// WorkflowByID implements [record.WorkflowView].
func (v workflowView) WorkflowByID(id string) (*record.WorkflowRecord, error) {
	return oneWorkflow(v.q.Stmt(selectWorkflow + " WHERE id=?").Text(id))
}

// WorkflowData implements [record.WorkflowView].
func (v workflowView) WorkflowData(key record.Key, slot int) ([]byte, error) {
	s := v.q.Stmt("SELECT data, sum FROM workflow_data WHERE workflow=? AND slot=?").Int(int64(key)).Int(int64(slot))
	var data []byte
	if s.Step() {
		data = append([]byte{}, s.ColBlob(0)...)
		if !s.ColSum(1, dataSum(int64(key), int64(slot), data)) {
			_ = s.Done() // which has no error that matters more
			return nil, sqlitedb.Damaged("%s of workflow %s", slotName(slot), v.idOf(key))
		}
	}
	return data, s.Done()
}

// WorkflowSteps implements [record.WorkflowView].
func (v workflowView) WorkflowSteps(key record.Key) ([]record.StepRecord, error) {
	s := v.q.Stmt(`SELECT step, status, number, fallback, reason, tasks, started_at, ended_at, failure, failure_sum
		FROM workflow_step WHERE workflow=? ORDER BY step`).Int(int64(key))
	var steps []record.StepRecord
	for s.Step() {
		r := record.StepRecord{
			Step: int(s.ColInt(0)), Status: jobhost.StepStatus(s.ColText(1)), Number: uint32(s.ColInt(2)),
			Fallback: s.ColInt(3)&1 != 0, Worker: s.ColInt(3)&2 != 0, Reason: s.ColText(4), Tasks: int(s.ColInt(5)),
			StartedAt: record.Millis(s.ColInt(6)), EndedAt: record.Millis(s.ColInt(7)),
		}
		var err error
		if r.Failure, err = scanStepFailure(s, 8, int64(key), s.ColInt(0)); err != nil {
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

// StepFailure implements [record.WorkflowView].
func (v workflowView) StepFailure(key record.Key, step int) (*jobhost.Failure, error) {
	s := v.q.Stmt("SELECT failure, failure_sum FROM workflow_step WHERE workflow=? AND step=?").Int(int64(key)).Int(int64(step))
	if !s.Step() {
		return nil, s.Done()
	}
	f, err := scanStepFailure(s, 0, int64(key), int64(step))
	return f, errors.Join(s.Done(), err)
}

// scanStepFailure returns the failure of a step, which column i holds, and the next
// one its checksum.
func scanStepFailure(s *sqlitedb.Stmt, i int, workflow, step int64) (*jobhost.Failure, error) {
	text := s.ColText(i)
	if !s.ColSum(i+1, stepSum(workflow, step, text)) {
		return lostRecord(0, 0), nil
	}
	return failureOf(text)
}

// Definition implements [record.WorkflowView].
func (v workflowView) Definition(hash string) ([]byte, error) {
	s := v.q.Stmt("SELECT text, sum FROM definition WHERE hash=?").Text(hash)
	var text []byte
	if s.Step() {
		text = append([]byte{}, s.ColBlob(0)...)
		if !s.ColSum(1, definitionSum(hash, text)) {
			_ = s.Done() // which has no error that matters more
			return nil, sqlitedb.Damaged("the definition %s", hash)
		}
	}
	return text, s.Done()
}

// ViewWorkflows implements [queue.WorkflowReader].
func (s *Store) ViewWorkflows(ctx context.Context, f func(record.WorkflowView) error) error {
	return s.db.Read(ctx, func(r *sqlitedb.Reader) error { return f(workflowView{r}) })
}

// Workflows implements [queue.WorkflowReader].
func (s *Store) Workflows(ctx context.Context, q record.WorkflowQuery) ([]record.WorkflowRecord, error) {
	var list []record.WorkflowRecord
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
func listWorkflows(r sqlitedb.Querier, q *record.WorkflowQuery) (string, []func(*sqlitedb.Stmt), error) {
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
		st := r.Stmt(`SELECT hash, text, sum FROM definition
			WHERE id IN (SELECT definition FROM workflow INDEXED BY workflow_open WHERE status=0)`)
		for st.Step() {
			hash, text := st.ColText(0), append([]byte{}, st.ColBlob(1)...)
			if st.ColSum(2, definitionSum(hash, text)) { // or its workflows fail when they go on
				texts[hash] = text
			}
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return texts, nil
}
