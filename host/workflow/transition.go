package workflow

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/internal/logkey"
)

// happening is an event of a workflow, with data that only this package needs.
type happening struct {
	key   record.Key
	event machine.Event
	// since is when the job that the event is about was submitted; 0 = none.
	since record.Millis
}

// transition implements [record.Transition]: it applies an event to a workflow, and what follows to those
// above and below it.
type transition struct {
	engine *Engine
	at     record.Millis
	aim    record.Key // see [record.Aimed]
	// first returns the first event; nil = none, possibly because it was refused.
	first func(t *transition, tx record.WorkflowTx, end record.End) (*happening, error)

	// Results of the last Apply:
	refused *jobhost.Error
	there   *record.WorkflowRecord // the existing one, of a start
	notes   []note

	rows map[record.Key]*row
	todo []happening
	// What it has begun: tasks, workflows including their steps, and the bytes of their inputs.
	begun, bytes int
}

// room counts what is to begin, and reports whether there is room for it: it is all one transaction, which
// holds up everything else. There is always room for the first, however large.
func (t *transition) room(n, bytes int) bool {
	first := t.begun == 0
	t.begun, t.bytes = t.begun+n, t.bytes+bytes
	return first || !t.engine.cfg.Bounds.Over(t.begun, t.bytes)
}

// row is a workflow within a transaction.
type row struct {
	*record.WorkflowRecord
	def *definition
}

// Aim implements [record.Aimed].
func (t *transition) Aim() record.Key { return t.aim }

// Apply implements [record.Transition].
func (t *transition) Apply(tx record.WorkflowTx, end record.End) error {
	t.refused, t.there, t.notes, t.todo = nil, nil, t.notes[:0], t.todo[:0]
	t.begun, t.bytes = 0, 0
	clear(t.rows)
	first, err := t.first(t, tx, end)
	if err != nil {
		return err
	}
	if first != nil {
		t.todo = append(t.todo, *first)
	}
	for i := 0; i < len(t.todo); i++ {
		refused := t.refused
		if err := t.let(tx, &t.todo[i]); err != nil {
			return err
		}
		if i > 0 { // it was not requested
			t.refused = refused
		}
	}
	return nil
}

// row reads a workflow; nil = it doesn't exist, or its definition can't be used and it has failed.
func (t *transition) row(tx record.WorkflowTx, key record.Key) (*row, error) {
	if r := t.rows[key]; r != nil {
		return r, nil
	}
	w, err := tx.Workflow(key)
	switch {
	case w == nil:
		return nil, err
	case err != nil:
		return nil, t.breakDown(tx, w, err)
	}
	return t.ready(tx, w)
}

// ready loads the definition of a workflow.
func (t *transition) ready(tx record.WorkflowTx, w *record.WorkflowRecord) (*row, error) {
	def := t.engine.defs.cached(w.Definition)
	if def == nil {
		text, err := tx.Definition(w.Definition)
		switch {
		case jobhost.CodeOf(err) == jobhost.CodeDamaged:
			return nil, t.breakDown(tx, w, err)
		case err != nil:
			return nil, err
		}
		if def, err = t.engine.defs.compile(w.Definition, text); err != nil {
			return nil, t.breakDown(tx, w, err)
		}
	}
	return t.know(w, def), nil
}

func (t *transition) know(w *record.WorkflowRecord, def *definition) *row {
	r := &row{w, def}
	if t.rows == nil {
		t.rows = map[record.Key]*row{}
	}
	t.rows[w.Key] = r
	return r
}

// let applies one event. h points into todo, and is valid only until todo grows.
func (t *transition) let(tx record.WorkflowTx, h *happening) error {
	r, err := t.row(tx, h.key)
	if r == nil || err != nil {
		return err
	}
	if r.brokenDown() {
		t.refused = cantGoOn(r.WorkflowRecord, errors.New("it has failed by a fault of the host"))
		return nil
	}
	reader := &reader{view: tx, row: r, event: &h.event}
	out, err := t.advance(r, &h.event, reader)
	switch {
	case errors.Is(err, errBroken), errors.Is(err, machine.ErrRecord):
		return t.breakDown(tx, r.WorkflowRecord, err)
	case err != nil:
		return err
	case out.Refused != nil:
		t.refused = out.Refused
		return nil //nolint:nilerr // a refusal is an answer
	case out.Record == nil:
		return nil
	}
	r.Record = out.Record
	a := applying{t: t, tx: tx, row: r, reader: reader, happening: *h, out: &out}
	return a.apply()
}

// errBroken is a fault in the deciding code.
var errBroken = errors.New("a fault of the host")

func (t *transition) advance(r *row, e *machine.Event, reader machine.Reader) (out machine.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errBroken, p)
		}
	}()
	return r.def.machine.Within(t.engine.cfg.Bounds).Advance(r.ID, r.Record, e, reader)
}

// brokenDown reports whether the workflow has ended although its record still says running.
func (r *row) brokenDown() bool {
	if r.Status == record.WorkflowRunning {
		return false
	}
	look, err := r.def.machine.Look(r.Record)
	return err == nil && look.Status() == jobhost.WorkflowRunning
}

func cantGoOn(w *record.WorkflowRecord, cause error) *jobhost.Error {
	return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("workflow %s can't go on: %v", w.ID, cause)}
}

// breakDown ends a workflow that can't continue. Its jobs run to their ends, but nothing follows from them.
func (t *transition) breakDown(tx record.WorkflowTx, w *record.WorkflowRecord, cause error) error {
	t.refused = cantGoOn(w, cause)
	if w.Status != record.WorkflowRunning {
		return nil
	}
	w.Status, w.EndedAt = record.WorkflowFailed, t.at
	w.ExpiresAt = t.engine.expires(w, t.at)
	at, code := t.at.Time(), jobhost.FailInternal
	if jobhost.CodeOf(cause) == jobhost.CodeDamaged {
		code = jobhost.FailDamaged
	}
	w.Ending = record.Ending{Failure: &jobhost.Failure{
		Code: code, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical,
		Message: fmt.Sprintf("the workflow can't go on: %v", cause), StartedAt: at, EndedAt: at,
	}}
	t.note(note{kind: jobhost.EventWorkflowEnded, id: w.ID, name: w.Name, status: jobhost.WorkflowFailed, failure: w.Ending.Failure, since: w.StartedAt, fault: cause})
	if w.Parent != 0 {
		t.notifyParent(w, machine.Event{What: machine.ChildEnded, Status: jobhost.WorkflowFailed, Failure: w.Ending.Failure})
	}
	return tx.SaveWorkflow(w)
}

// notifyParent notifies the parent workflow.
func (t *transition) notifyParent(w *record.WorkflowRecord, e machine.Event) {
	if mark, ok := readMark(w.ParentMark); ok {
		e.At, e.Run = t.at.Time(), mark.Run
		t.todo = append(t.todo, happening{key: w.Parent, event: e})
	}
}

// expires returns when a workflow that ends now expires. One that is a step of another is kept as long as
// that.
func (e *Engine) expires(w *record.WorkflowRecord, now record.Millis) record.Millis {
	if w.Parent != 0 {
		return 0
	}
	kept := w.Retention
	if kept == 0 {
		kept = e.cfg.Retention.For(statusOf(w.Status))
	}
	if kept == 0 {
		return 0
	}
	return now + record.Millis(kept.Milliseconds())
}

func statusOf(s record.WorkflowStatus) jobhost.WorkflowStatus {
	switch s {
	case record.WorkflowCompleted:
		return jobhost.WorkflowCompleted
	case record.WorkflowFailed:
		return jobhost.WorkflowFailed
	case record.WorkflowCancelled:
		return jobhost.WorkflowCancelled
	default:
		return jobhost.WorkflowRunning
	}
}

func storedStatus(s jobhost.WorkflowStatus) record.WorkflowStatus {
	switch s {
	case jobhost.WorkflowCompleted:
		return record.WorkflowCompleted
	case jobhost.WorkflowFailed:
		return record.WorkflowFailed
	case jobhost.WorkflowCancelled:
		return record.WorkflowCancelled
	default:
		return record.WorkflowRunning
	}
}

// note is an event to be published once it is durable.
type note struct {
	kind     jobhost.EventKind
	id, name string
	step     string
	job      string
	status   jobhost.WorkflowStatus
	stands   jobhost.StepStatus
	failure  *jobhost.Failure
	fault    error         // why a workflow can't go on; nil = it has ended by itself
	since    record.Millis // start of what has ended; 0 = not known
}

func (t *transition) note(n note) { t.notes = append(t.notes, n) }

// Applied implements [record.Transition].
func (t *transition) Applied() {
	for i := range t.notes {
		t.engine.publish(&t.notes[i], t.at)
	}
}

func (e *Engine) publish(n *note, at record.Millis) {
	var took time.Duration
	if n.since != 0 {
		took = max(at.Time().Sub(n.since.Time()), 0)
	}
	switch n.kind {
	case jobhost.EventWorkflowStarted:
		e.open.Add(1)
		e.cfg.Observer.WorkflowStarted(n.name)
	case jobhost.EventWorkflowResumed:
		e.open.Add(1)
		e.cfg.Observer.WorkflowResumed(n.name)
	case jobhost.EventWorkflowEnded:
		e.open.Add(-1)
		if n.fault != nil {
			e.cfg.Logger.Error("workflow can't go on", logkey.Workflow, n.id, logkey.Error, n.fault)
		}
		e.cfg.Observer.WorkflowEnded(n.name, n.status, took)
		e.cfg.Logger.Debug("workflow ended", logkey.Workflow, n.id, logkey.State, n.status, logkey.Duration, took)
	case jobhost.EventStep:
		if n.stands.Ended() {
			e.cfg.Observer.StepEnded(n.name, n.step, n.stands, took)
		}
	}
	e.cfg.Publish(jobhost.Event{
		Kind: n.kind, Time: at.Time(), Job: n.job, Workflow: n.id, Step: n.step, StepStatus: n.stands, WorkflowStatus: n.status, Failure: n.failure,
	})
}
