package pgqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// workflowTx implements [record.WorkflowTx] on the image.
//
// When rows are missing the transition runs again, and what it did is discarded. To ask for as many rows as possible in one
// round of reading, it continues with guesses: an unknown id is free, and data are null. It also changes the image as if that
// were so, for the transitions after it. It stops with errMissing only without its workflow or the definition of that.
type workflowTx struct {
	*batch
	tx  *pgdb.Tx
	res *record.OpResult
}

var _ record.WorkflowTx = (*workflowTx)(nil)

var errMissing = errors.New("rows are missing, which are read now")

// advance applies a transition, if there is one.
func (b *batch) advance(tx *pgdb.Tx, t record.Transition, res *record.OpResult) error {
	if t == nil {
		return nil
	}
	err := t.Apply(&workflowTx{b, tx, res}, record.End{Job: res.JobEnded, Final: res.Final})
	if tx.Missed() {
		return nil
	}
	return err
}

// prefetch asks for the workflow of an operation's transition, so that it is read together with the operation's rows.
func (b *batch) prefetch(tx *pgdb.Tx, t record.Transition) {
	if aimed, ok := t.(record.Aimed); ok {
		if key := aimed.Aim(); key != 0 {
			b.image.workflows.rows.Get(tx, int64(key))
		}
	}
}

// guess stands in for data that are being read.
const guess = "null"

// missing is the error of a row that Get did not return, if it has to be read first.
func (t *workflowTx) missing() error {
	if t.tx.Missed() {
		return errMissing
	}
	return nil
}

// Workflow implements [record.WorkflowView].
func (t *workflowTx) Workflow(key record.Key) (*record.WorkflowRecord, error) {
	return visible(t.image.workflows.rows.Get(t.tx, int64(key)), t.missing())
}

// visible returns a copy of a workflow, unless it is being removed.
func visible(row *workflowRow, err error) (*record.WorkflowRecord, error) {
	if row == nil || err != nil || row.Status == record.WorkflowRemoving {
		return nil, err
	}
	w := row.WorkflowRecord
	return &w, row.damaged
}

// WorkflowByID implements [record.WorkflowView].
func (t *workflowTx) WorkflowByID(id string) (*record.WorkflowRecord, error) {
	key := t.image.workflows.ids.Get(t.tx, id)
	if key == nil {
		return nil, nil
	}
	return t.Workflow(record.Key(*key))
}

// WorkflowData implements [record.WorkflowView].
func (t *workflowTx) WorkflowData(key record.Key, slot int) ([]byte, error) {
	data := t.image.workflows.data.Get(t.tx, slotKey{int64(key), int64(slot)})
	switch {
	case data != nil:
		return *data, nil
	case t.tx.Missed():
		return []byte(guess), nil
	}
	return nil, nil
}

// WorkflowSteps implements [record.WorkflowView]. Transitions don't look at all steps, so the image doesn't have them.
func (t *workflowTx) WorkflowSteps(key record.Key) ([]record.StepRecord, error) {
	s := t.tx.Direct()
	if s == nil {
		return nil, errMissing
	}
	return stepsOf(s, key)
}

// StepFailure implements [record.WorkflowView].
func (t *workflowTx) StepFailure(key record.Key, step int) (*jobhost.Failure, error) {
	text := t.image.workflows.steps.failures.Get(t.tx, stepKey{int64(key), int64(step)})
	return t.failure(text)
}

// failure parses a text that Get returned.
func (t *workflowTx) failure(text *string) (*jobhost.Failure, error) {
	if text == nil && t.tx.Missed() {
		return new(jobhost.Failure), nil
	}
	return parseFailure(text)
}

// Definition implements [record.WorkflowView].
func (t *workflowTx) Definition(hash string) ([]byte, error) {
	text := t.image.workflows.defs.Get(t.tx, hash)
	if text == nil {
		return nil, t.missing()
	}
	return *text, nil
}

// JobOutput implements [record.WorkflowView].
func (t *workflowTx) JobOutput(id string, most int) (*record.JobOutput, error) {
	row := t.image.workflows.outputs.Get(t.tx, outputKey{id, int64(most)})
	switch {
	case row == nil && t.tx.Missed():
		return &record.JobOutput{Results: [][]byte{[]byte(guess)}, Tasks: 1, Size: int64(len(guess))}, nil
	case row == nil:
		return nil, nil
	}
	return row.changed(&t.image.tasks).output(int64(most)), nil
}

// JobFailure implements [record.WorkflowView].
func (t *workflowTx) JobFailure(id string) (*jobhost.Failure, error) {
	im := t.image
	dead := im.workflows.dead.Get(t.tx, id)
	if dead == nil {
		return t.failure(nil)
	}
	task := dead.changed(&im.tasks)
	if task == 0 {
		return nil, nil
	}
	if text := im.tasks.lastFailure(task); text != "" {
		return parseFailure(&text)
	}
	return t.failure(im.workflows.last.Get(t.tx, task))
}

// AddWorkflow implements [record.WorkflowTx].
func (t *workflowTx) AddWorkflow(w *record.WorkflowRecord, definition []byte) (bool, error) {
	im := t.image
	rows := &im.workflows
	if rows.ids.Get(t.tx, w.ID) != nil {
		return false, nil
	}
	if rows.defs.Get(t.tx, w.Definition) == nil {
		rows.defs.Put(w.Definition, definition)
	}
	rows.uses[w.Definition]++
	w.Key = record.Key(im.next)
	im.next++
	added := *w
	added.Retention = w.Retention.Truncate(time.Millisecond)
	added.EndedAt, added.ExpiresAt, added.Ending = 0, 0, record.Ending{}
	rows.rows.Put(int64(w.Key), workflowRow{WorkflowRecord: added})
	rows.ids.Put(w.ID, int64(w.Key))
	return true, nil
}

// SaveWorkflow implements [record.WorkflowTx].
func (t *workflowTx) SaveWorkflow(w *record.WorkflowRecord) error {
	rows := &t.image.workflows.rows
	row := rows.Get(t.tx, int64(w.Key))
	if row == nil {
		return t.missing()
	}
	next := workflowRow{WorkflowRecord: row.WorkflowRecord}
	next.Status, next.Record, next.EndedAt, next.ExpiresAt, next.Ending = w.Status, w.Record, w.EndedAt, w.ExpiresAt, w.Ending
	rows.Put(int64(w.Key), next)
	return nil
}

// endingText returns how a workflow ended as JSON; empty = it is open.
func endingText(e *record.Ending) (string, error) {
	if *e == (record.Ending{}) {
		return "", nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode a workflow: %w", err)
	}
	return string(text), nil
}

// SetWorkflowData implements [record.WorkflowTx].
func (t *workflowTx) SetWorkflowData(key record.Key, slot int, data []byte) error {
	t.image.workflows.data.Put(slotKey{int64(key), int64(slot)}, notNil(data))
	return nil
}

// SaveStep implements [record.WorkflowTx].
func (t *workflowTx) SaveStep(key record.Key, s *record.StepRecord) error {
	var failure string
	if s.Failure != nil {
		text, err := json.Marshal(s.Failure)
		if err != nil {
			return fmt.Errorf("encode a failure: %w", err)
		}
		failure = string(text)
	}
	t.image.workflows.steps.save(stepOf(key, s, failure))
	return nil
}

// SubmitStep implements [record.WorkflowTx]. The job of a step has neither a unique key nor a parent nor an object of its own,
// so only its id can be taken.
func (t *workflowTx) SubmitStep(job *record.JobSpec) (refused *jobhost.Error, err error) {
	var added record.OpResult
	if t.image.existing(t.tx, job, &added) {
		refused, _ = errors.AsType[*jobhost.Error](record.TakenID(job.ID))
		return refused, nil
	}
	if err := t.insert(job, &added); err != nil {
		return nil, err
	}
	job.Key = added.Key
	t.res.Then = append(t.res.Then, job)
	t.image.workflows.jobs.Put(workflowJob{int64(job.Origin.Workflow), int64(job.Key)}, struct{}{})
	return nil, nil
}
