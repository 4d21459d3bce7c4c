package sqlitequeue

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// workflowTx implements [record.WorkflowTx].
type workflowTx struct {
	workflowView
	tx     *sqlitedb.Tx
	ledger *ledger
	res    *record.OpResult
}

// advance lets a transition happen, if there is one.
func (l *ledger) advance(tx *sqlitedb.Tx, t record.Transition, res *record.OpResult) error {
	if t == nil {
		return nil
	}
	return t.Apply(&workflowTx{workflowView{tx}, tx, l, res}, record.End{Job: res.JobEnded, Final: res.Final})
}

// AddWorkflow implements [record.WorkflowTx].
func (t *workflowTx) AddWorkflow(w *record.WorkflowRecord, definition []byte) (bool, error) {
	s := t.tx.Stmt("SELECT 1 FROM workflow WHERE id=?").Text(w.ID)
	taken := s.Step()
	if err := s.Done(); taken || err != nil {
		return false, err
	}
	id, err := t.useDefinition(w.Definition, definition)
	if err != nil {
		return false, err
	}
	labels, err := textOrEmpty(w.Labels, len(w.Labels) > 0)
	if err != nil {
		return false, err
	}
	w.Key = record.Key(t.ledger.next)
	t.ledger.next++
	return true, t.tx.Stmt(`INSERT INTO workflow(seq, id, name, definition, status, digest, depth, parent, parent_id, parent_step, parent_mark,
			labels, started_at, retention_ms, ended_at, expires_at, record, sum)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,?,?)`).
		Int(int64(w.Key)).Text(w.ID).Text(w.Name).Int(id).Int(int64(w.Status)).Blob(w.Digest[:]).Int(int64(w.Depth)).
		Int(int64(w.Parent)).TextOrNull(w.ParentID).TextOrNull(w.ParentStep).TextOrNull(w.ParentMark).
		TextOrNull(labels).Int(int64(w.StartedAt)).Int(w.Retention.Milliseconds()).Blob(w.Record).
		Int(workflowSum(w, "")).Exec()
}

// useDefinition counts a workflow more that runs a definition, which is kept if it is new, and returns its number.
func (t *workflowTx) useDefinition(hash string, text []byte) (id int64, err error) {
	s := t.tx.Stmt("SELECT id FROM definition WHERE hash=?").Text(hash)
	found := s.Step()
	if found {
		id = s.ColInt(0)
	}
	if err := s.Done(); err != nil {
		return 0, err
	}
	if found {
		return id, t.tx.Stmt("UPDATE definition_use SET n=n+1 WHERE definition=?").Int(id).Exec()
	}
	s = t.tx.Stmt("INSERT INTO definition(hash, text, sum) VALUES(?,?,?) RETURNING id").Text(hash).Blob(text).Int(definitionSum(hash, text))
	if s.Step() {
		id = s.ColInt(0)
	}
	if err := s.Done(); err != nil {
		return 0, err
	}
	return id, t.tx.Stmt("INSERT INTO definition_use(definition, n) VALUES(?,1)").Int(id).Exec()
}

func textOrEmpty(v any, there bool) (string, error) {
	if !there {
		return "", nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode a workflow: %w", err)
	}
	return string(text), nil
}

// SaveWorkflow implements [record.WorkflowTx].
func (t *workflowTx) SaveWorkflow(w *record.WorkflowRecord) error {
	if w.Status == record.WorkflowRunning && w.EndedAt == 0 {
		// The usual case leaves all indexes alone.
		err := t.tx.Stmt("UPDATE workflow SET record=?, sum=? WHERE seq=? AND status=0 AND ending IS NULL").
			Blob(w.Record).Int(workflowSum(w, "")).Int(int64(w.Key)).Exec()
		if err != nil || t.tx.Changes() > 0 {
			return err
		}
	}
	ending, err := textOrEmpty(&w.Ending, w.Ending != (record.Ending{}))
	if err != nil {
		return err
	}
	return t.tx.Stmt("UPDATE workflow SET status=?, ended_at=?, expires_at=?, ending=?, record=?, sum=? WHERE seq=?").
		Int(int64(w.Status)).Int(int64(w.EndedAt)).Int(int64(w.ExpiresAt)).TextOrNull(ending).Blob(w.Record).
		Int(workflowSum(w, ending)).Int(int64(w.Key)).Exec()
}

// SetWorkflowData implements [record.WorkflowTx].
func (t *workflowTx) SetWorkflowData(key record.Key, slot int, data []byte) error {
	return t.tx.Stmt("INSERT INTO workflow_data(workflow, slot, data, sum) VALUES(?,?,?,?) ON CONFLICT DO UPDATE SET data=excluded.data, sum=excluded.sum").
		Int(int64(key)).Int(int64(slot)).Blob(data).Int(dataSum(int64(key), int64(slot), data)).Exec()
}

// SaveStep implements [record.WorkflowTx].
func (t *workflowTx) SaveStep(key record.Key, s *record.StepRecord) error {
	failure, err := textOrEmpty(s.Failure, s.Failure != nil)
	if err != nil {
		return err
	}
	var fallback int64
	if s.Fallback {
		fallback = 1
	}
	if s.Worker {
		fallback |= 2
	}
	return t.tx.Stmt(`INSERT INTO workflow_step(workflow, step, status, number, fallback, reason, tasks, started_at, ended_at, failure, failure_sum)
		VALUES(?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET status=excluded.status, fallback=excluded.fallback, reason=excluded.reason,
			tasks=CASE WHEN excluded.tasks>0 OR number<>excluded.number THEN excluded.tasks ELSE tasks END,
			started_at=CASE WHEN number=excluded.number AND started_at>0 THEN started_at ELSE excluded.started_at END,
			number=excluded.number, ended_at=excluded.ended_at, failure=coalesce(excluded.failure, failure),
			failure_sum=CASE WHEN excluded.failure IS NULL THEN failure_sum ELSE excluded.failure_sum END`).
		Int(int64(key)).Int(int64(s.Step)).Text(string(s.Status)).Int(int64(s.Number)).Int(fallback).TextOrNull(s.Reason).
		Int(int64(s.Tasks)).Int(int64(s.StartedAt)).Int(int64(s.EndedAt)).TextOrNull(failure).
		Int(stepSum(int64(key), int64(s.Step), failure)).Exec()
}

// SubmitStep implements [record.WorkflowTx].
func (t *workflowTx) SubmitStep(job *record.JobSpec) (refused *jobhost.Error, err error) {
	text, err := jobTexts(job)
	if err != nil {
		return nil, err
	}
	var added record.OpResult
	if err := t.ledger.submit(t.tx, job, text, &added); err != nil {
		return nil, err
	}
	if added.Existing {
		added.Err = record.TakenID(job.ID)
	}
	if refused, ok := errors.AsType[*jobhost.Error](added.Err); ok {
		return refused, nil
	}
	job.Key = added.Key
	t.res.Then = append(t.res.Then, job)
	return nil, t.tx.Stmt("INSERT INTO workflow_job(workflow, job) VALUES(?,?)").Int(int64(job.Origin.Workflow)).Int(int64(job.Key)).Exec()
}

// CancelStep implements [record.WorkflowTx].
func (t *workflowTx) CancelStep(id string, origin *record.Origin, at, expires record.Millis) error {
	s := t.tx.Stmt("SELECT 1 FROM workflow_job WHERE workflow=? AND job=(SELECT seq FROM job WHERE id=?)").Int(int64(origin.Workflow)).Text(id)
	own := s.Step()
	if err := s.Done(); !own || err != nil {
		return err
	}
	var res record.OpResult
	if err := t.ledger.cancel(t.tx, &record.Cancel{ID: id, At: at, ExpiresAt: expires}, &res); err != nil {
		return err
	}
	if len(res.Tasks) == 0 {
		return nil
	}
	for i, job := range t.res.Then { // it was submitted by this transition: no lane has heard of it
		if job.ID == id {
			t.res.Then = append(t.res.Then[:i:i], t.res.Then[i+1:]...)
			return nil
		}
	}
	t.res.Dropped = append(t.res.Dropped, droppedOf(id, origin, &res))
	return nil
}

func droppedOf(id string, origin *record.Origin, res *record.OpResult) record.Dropped {
	return record.Dropped{Origin: *origin, ID: id, Worker: res.Worker, Tasks: res.Tasks, Final: res.Final, JobEnded: res.JobEnded}
}

// isStep refuses the removal of a job that is kept with its workflow.
func isStep(tx *sqlitedb.Tx, t *target, id string, res *record.OpResult) error {
	s := tx.Stmt("SELECT options->>'$.origin.id' FROM job WHERE seq=? AND options IS NOT NULL").Int(t.key)
	if s.Step() && s.ColText(0) != "" {
		res.Err = &jobhost.Error{
			Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s is a step of workflow %s", id, s.ColText(0)),
			Hint: "it goes with its workflow: jobhost workflow rm " + s.ColText(0),
		}
	}
	return s.Done()
}
