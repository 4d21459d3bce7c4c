package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// applying writes the outcome of an event for a workflow.
type applying struct {
	t         *transition
	tx        record.WorkflowTx
	row       *row
	reader    *reader
	happening happening
	out       *machine.Outcome
}

func (a *applying) apply() error {
	for _, keep := range a.out.Keep {
		if err := a.tx.SetWorkflowData(a.row.Key, keep.Slot, keep.Data); err != nil {
			return err
		}
	}
	for i := range a.out.Changes {
		if err := a.change(&a.out.Changes[i]); err != nil {
			return err
		}
	}
	if err := a.drop(); err != nil {
		return err
	}
	if err := a.add(); err != nil {
		return err
	}
	if a.out.Resumed {
		a.resumed()
	}
	if a.out.End != nil {
		if err := a.end(a.out.End); err != nil {
			return err
		}
	}
	return a.tx.SaveWorkflow(a.row.WorkflowRecord)
}

// change writes the status of a step.
func (a *applying) change(c *machine.Change) error {
	s := record.StepRecord{
		Step: c.Step, Status: c.Status, Number: c.Run.Number, Fallback: c.Fallback, Worker: c.Run.Fallback,
		Reason: c.Reason, Tasks: c.Tasks, Failure: c.Failure,
	}
	if s.Number > 0 {
		s.StartedAt = a.t.at
	}
	if c.Status.Ended() {
		s.EndedAt = a.t.at
	}
	n := note{
		kind: jobhost.EventStep, id: a.row.ID, name: a.row.Name, step: a.row.def.name(c.Step), stands: c.Status, failure: c.Failure,
	}
	if s.Number > 0 && a.row.def.runsJob(c.Run) {
		n.job = a.row.def.machine.ID(a.row.ID, c.Run)
	}
	if c.Run == a.happening.event.Run && s.Number > 0 {
		n.since = a.happening.since
	}
	a.t.note(n)
	return a.tx.SaveStep(a.row.Key, &s)
}

// runsJob reports whether a run is a job.
func (d *definition) runsJob(r machine.Run) bool { return r.Fallback || d.step(r.Step).Worker != "" }

// drop cancels what is no longer wanted.
func (a *applying) drop() error {
	c := a.row.def.machine
	for _, run := range a.out.Cancel {
		if err := a.tx.CancelStep(c.ID(a.row.ID, run), a.origin(run.Step, markOf(run)), a.t.at, 0); err != nil {
			return err
		}
	}
	for _, run := range a.out.Stop {
		child, err := a.tx.WorkflowByID(c.ChildID(a.row.ID, run))
		if err != nil {
			return err
		}
		if child != nil && child.Parent == a.row.Key {
			a.t.todo = append(a.t.todo, happening{key: child.Key, event: machine.Event{
				What: machine.Cancelled, At: a.t.at.Time(), Reason: "workflow " + a.row.ID + ", of which it is a step, doesn't need it any more",
			}})
		}
	}
	for _, timer := range a.out.Unset {
		if err := a.tx.CancelStep(c.TimerID(a.row.ID, timer), a.origin(timer.Step, timerMark(timer)), a.t.at, a.t.at+1); err != nil {
			return err
		}
	}
	return nil
}

// origin returns the origin of a job of the workflow.
func (a *applying) origin(step int, mark string) *record.Origin {
	return &record.Origin{Workflow: a.row.Key, ID: a.row.ID, Step: a.row.def.name(step), Mark: mark}
}

// add adds what is to run.
func (a *applying) add() error {
	for i := range a.out.Submit {
		if err := a.submit(&a.out.Submit[i]); err != nil {
			return err
		}
	}
	for i := range a.out.Begin {
		if err := a.begin(&a.out.Begin[i]); err != nil {
			return err
		}
	}
	for i := range a.out.Set {
		if err := a.set(&a.out.Set[i]); err != nil {
			return err
		}
	}
	return nil
}

// submit adds the job of a step. If that isn't possible, the step fails.
func (a *applying) submit(s *machine.Submit) error {
	step := a.row.def.step(s.Run.Step)
	content, err := a.reader.compose(&s.Payload)
	if fault, ok := errors.AsType[*jobhost.Error](err); ok {
		a.failed(s.Run, machine.JobDead, fault.Message)
		return nil
	}
	if err != nil {
		return err
	}
	size := len(content.data)
	for _, item := range s.Items {
		size += len(item)
	}
	if !a.t.room(s.Tasks, size) {
		a.tooMuch(s.Run, machine.JobDead)
		return nil
	}
	job := a.job(s, step, content)
	refused, err := a.tx.SubmitStep(job)
	if refused != nil {
		a.failed(s.Run, machine.JobDead, "its job can't be submitted: "+refused.Message)
	}
	return err
}

// job creates the job of a run.
func (a *applying) job(s *machine.Submit, step *jobhost.Step, c content) *record.JobSpec {
	e := a.t.engine
	def := &a.row.def.Workflow
	spec := jobhost.Spec{
		ID: s.ID, Worker: step.Worker, Entry: step.Entry, Payload: c.data, ContentType: cmp.Or(s.Payload.ContentType, step.ContentType),
		Tasks: s.Tasks, Priority: def.Priority, Timeout: time.Duration(step.Timeout), Labels: step.Labels,
	}
	if s.Run.Fallback {
		spec.Worker, spec.Entry = step.Fallback, ""
	}
	if step.Priority != nil {
		spec.Priority = *step.Priority
	}
	if step.Signal != "" {
		spec.Timeout = 0 // that of the wait, which its fallback worker replaces
	}
	job := e.queue.NewJob(&spec)
	job.Items, job.Ref, job.Borrowed = s.Items, c.ref, c.ref != ""
	if step.Retry != nil {
		retry := step.Retry.Over(e.queue.RetryOf(spec.Worker))
		job.Retry, job.MaxAttempts = &retry, retry.MaxAttempts
	}
	if step.Breaker != nil && !s.Run.Fallback {
		policy := step.Breaker.Policy(def.Name, step.Name)
		job.Breaker = &policy
	}
	job.MaxParallel = step.MaxParallel
	job.CreatedAt, job.ReadyAt = a.t.at, a.t.at
	job.Origin = a.origin(s.Run.Step, markOf(s.Run))
	return job
}

// failed fails a run that could not begin.
func (a *applying) failed(run machine.Run, what machine.Happening, message string) {
	a.failedBy(run, what, &jobhost.Failure{Code: jobhost.FailExpression, Category: jobhost.CategoryValidation, Message: message})
}

// tooMuch fails a run for which the transition has no room.
func (a *applying) tooMuch(run machine.Run, what machine.Happening) {
	a.failedBy(run, what, &jobhost.Failure{Code: jobhost.FailLimit, Category: jobhost.CategoryResource, Message: a.t.engine.cfg.Bounds.TooMuch()})
}

func (a *applying) failedBy(run machine.Run, what machine.Happening, f *jobhost.Failure) {
	at := a.t.at.Time()
	f.Severity, f.StartedAt, f.EndedAt = jobhost.SeverityError, at, at
	e := machine.Event{What: what, At: at, Run: run, Failure: f}
	if what == machine.ChildEnded {
		e.Status = jobhost.WorkflowFailed
	}
	a.t.todo = append(a.t.todo, happening{key: a.row.Key, event: e})
}

// begin starts the workflow of a step.
func (a *applying) begin(b *machine.Begin) error {
	e := a.t.engine
	step := a.row.def.step(b.Run.Step)
	def := e.defs.byName(step.Workflow)
	if def == nil {
		a.failed(b.Run, machine.ChildEnded, e.defs.missing(step.Workflow).Message)
		return nil
	}
	if a.row.Depth+1 >= e.cfg.MaxNesting {
		a.failed(b.Run, machine.ChildEnded, fmt.Sprintf("workflows are steps of each other more than %d deep", e.cfg.MaxNesting))
		return nil
	}
	c, err := a.reader.compose(&b.Payload)
	if err == nil && c.ref != "" {
		err = tooLarge("the input of a workflow", c.size)
	}
	if err == nil && def.InputSchema != nil {
		if err = def.InputSchema.Check(c.data); err != nil {
			err = misfit(err, def.Workflow.Name)
		}
	}
	if fault, ok := errors.AsType[*jobhost.Error](err); ok {
		a.failed(b.Run, machine.ChildEnded, fault.Message)
		return nil
	}
	if err != nil {
		return err
	}
	if !a.t.room(1+len(def.Steps), len(c.data)) {
		a.tooMuch(b.Run, machine.ChildEnded)
		return nil
	}
	child := &record.WorkflowRecord{
		ID: b.ID, Name: def.Workflow.Name, Definition: def.hash, Labels: merge(def.Workflow.Labels, a.row.Labels), Depth: a.row.Depth + 1,
		Parent: a.row.Key, ParentID: a.row.ID, ParentStep: step.Name, ParentMark: markOf(b.Run), StartedAt: a.t.at,
	}
	added, err := a.t.add(a.tx, child, def, c.data)
	if err == nil && !added {
		a.failed(b.Run, machine.ChildEnded, fmt.Sprintf("there is a workflow %s already, which is no step of this one", child.ID))
	}
	return err
}

// add adds a workflow and its start event; false = its id is taken.
func (t *transition) add(tx record.WorkflowTx, w *record.WorkflowRecord, def *definition, input []byte) (bool, error) {
	if added, err := tx.AddWorkflow(w, def.text); !added || err != nil {
		return false, err
	}
	if err := tx.SetWorkflowData(w.Key, inputSlot, input); err != nil {
		return false, err
	}
	t.know(w, def)
	t.note(note{kind: jobhost.EventWorkflowStarted, id: w.ID, name: w.Name, status: jobhost.WorkflowRunning})
	t.todo = append(t.todo, happening{key: w.Key, event: machine.Event{What: machine.Started, At: t.at.Time()}})
	return true, nil
}

// merge merges labels; those of b take precedence.
func merge(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]string, len(b))
	}
	maps.Copy(all, b)
	return all
}

// set adds a timer: a job of the host's own that waits for its time and does nothing.
func (a *applying) set(s *machine.SetTimer) error {
	job := a.t.engine.queue.NewJob(&jobhost.Spec{ID: s.ID, Worker: jobhost.WorkflowWorker})
	job.CreatedAt = a.t.at
	job.ReadyAt = max(record.MillisOf(s.At.Add(time.Millisecond-1)), a.t.at) // never early
	job.Retention = time.Second
	job.MaxAttempts = jobhost.MaxAttempts
	job.Origin = a.origin(s.Timer.Step, timerMark(s.Timer))
	refused, err := a.tx.SubmitStep(job)
	if refused != nil {
		// An error would roll back whatever this belongs to, again and again.
		return a.t.breakDown(a.tx, a.row.WorkflowRecord, fmt.Errorf("its timer can't be set: %w", refused))
	}
	return err
}

// resumed reopens a workflow that had failed.
func (a *applying) resumed() {
	w := a.row.WorkflowRecord
	w.Status, w.EndedAt, w.ExpiresAt, w.Ending = record.WorkflowRunning, 0, 0, record.Ending{}
	a.t.note(note{kind: jobhost.EventWorkflowResumed, id: w.ID, name: w.Name, status: jobhost.WorkflowRunning})
	if w.Parent != 0 {
		a.t.notifyParent(w, machine.Event{What: machine.ChildResumed})
	}
}

// end writes the end of a workflow.
func (a *applying) end(e *machine.End) error {
	w := a.row.WorkflowRecord
	w.Status, w.EndedAt = storedStatus(e.Status), a.t.at
	w.ExpiresAt = a.t.engine.expires(w, a.t.at)
	w.Ending = record.Ending{Step: a.row.def.name(e.Step), Reason: e.Reason, Failure: e.Failure}
	event := machine.Event{What: machine.ChildEnded, Status: e.Status, Failure: e.Failure}
	if e.Status == jobhost.WorkflowCompleted {
		c, err := a.reader.compose(&e.Output)
		if fault, ok := errors.AsType[*jobhost.Error](err); ok {
			// The work is done; only the output can't be composed.
			w.Ending.Reason = "it has no output: " + fault.Message
			c, err = content{data: []byte("null"), size: 4}, nil
		}
		if err != nil {
			return err
		}
		w.Ending.OutputRef, w.Ending.OutputSize = c.ref, c.size
		if c.ref == "" {
			if err := a.tx.SetWorkflowData(w.Key, outputSlot, c.data); err != nil {
				return err
			}
			event.Output = c.data
		}
	}
	a.t.note(note{
		kind: jobhost.EventWorkflowEnded, id: w.ID, name: w.Name, step: w.Ending.Step, status: e.Status, failure: e.Failure, since: w.StartedAt,
	})
	if w.Parent != 0 {
		a.t.notifyParent(w, event)
	}
	return nil
}
