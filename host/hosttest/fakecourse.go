package hosttest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/course"
)

// happenLocked tells a workflow of something. What happens in the course of that
// comes afterwards, in order.
func (f *Fake) happenLocked(w *fakeWorkflow, e course.Event) {
	f.workflows.happened = append(f.workflows.happened, fakeHappening{w, e})
	f.tellAllLocked()
}

// tellAllLocked tells the workflows of all that happened, unless somebody does.
func (f *Fake) tellAllLocked() {
	if f.workflows.telling {
		return
	}
	f.workflows.telling = true
	for len(f.workflows.happened) > 0 {
		next := f.workflows.happened[0]
		f.workflows.happened = f.workflows.happened[1:]
		_ = f.advanceLocked(next.workflow, next.event) // nobody asked for it, so nobody is told
	}
	f.workflows.telling = false
}

// requestLocked tells a workflow of something that somebody asks for, and
// returns why it is refused.
func (f *Fake) requestLocked(w *fakeWorkflow, e course.Event) error {
	f.workflows.telling = true
	err := f.advanceLocked(w, e)
	f.workflows.telling = false
	f.tellAllLocked()
	return err
}

func (f *Fake) advanceLocked(w *fakeWorkflow, e course.Event) error {
	e.At = time.Now().UTC()
	out, err := w.course.Advance(w.id, w.record, &e, fakeData{f, w})
	switch {
	case err != nil:
		return fmt.Errorf("advance: %w", err)
	case out.Refused != nil:
		return out.Refused
	case out.Record == nil:
		return nil
	}
	w.record = out.Record
	for _, keep := range out.Keep {
		w.kept[keep.Slot] = bytes.Clone(keep.Data)
	}
	if out.Resumed {
		f.resumedLocked(w)
	}
	f.noteRunsLocked(w, &out)
	for i := range out.Changes {
		f.changedLocked(w, &out.Changes[i])
	}
	f.stopLocked(w, &out)
	f.beginLocked(w, &out)
	if out.End != nil {
		f.endedLocked(w, out.End)
	}
	return nil
}

func (f *Fake) resumedLocked(w *fakeWorkflow) {
	w.ended, w.end, w.done = nil, course.End{}, make(chan struct{})
	w.note(jobhost.TraceEntry{What: "started", Detail: "it goes on"})
	f.tellWorkflowLocked(w, jobhost.Event{Kind: jobhost.EventWorkflowResumed, WorkflowStatus: jobhost.WorkflowRunning})
	if w.parent != nil {
		f.happenLocked(w.parent, course.Event{What: course.ChildResumed, Run: w.parentRun})
	}
}

// noteRunsLocked remembers what the steps run, before it is told.
func (f *Fake) noteRunsLocked(w *fakeWorkflow, out *course.Outcome) {
	for i := range out.Submit {
		w.steps[out.Submit[i].Run.Step].Job = out.Submit[i].ID
	}
	for i := range out.Begin {
		w.steps[out.Begin[i].Run.Step].Workflow = out.Begin[i].ID
		w.children[out.Begin[i].Run] = out.Begin[i].ID
	}
}

// changedLocked notes and tells where a step stands.
func (f *Fake) changedLocked(w *fakeWorkflow, c *course.Change) {
	s, now := &w.steps[c.Step], time.Now().UTC()
	definition := &w.definition.Steps[c.Step]
	began := c.Status == jobhost.StepRunning && c.Run.Number > 0
	if began && s.StartedAt == nil || s.EndedAt != nil {
		s.StartedAt = &now
	}
	s.Status, s.Reason, s.Runs = c.Status, c.Reason, int(c.Run.Number)
	s.Tasks = max(s.Tasks, c.Tasks)
	s.EndedAt, s.Output, s.OutputSize, s.Failure = nil, nil, 0, nil
	if c.Fallback {
		s.Fallback = definition.Fallback
	}
	if c.Failure != nil {
		s.lastFailure = c.Failure
	}
	if c.Status.Ended() {
		s.EndedAt = &now
	}
	switch c.Status {
	case jobhost.StepFailed:
		s.Failure = c.Failure
	case jobhost.StepCompleted:
		if c.Output != nil {
			payload := course.Payload{From: []course.Part{{Source: *c.Output}}}
			if data, err := payload.Compose(fakeData{f, w}.Read); err == nil {
				s.Output, s.OutputSize = shown(data)
			}
		}
	}
	what := string(c.Status)
	if began {
		what = "started"
	}
	entry := jobhost.TraceEntry{Step: s.Name, What: what, Job: s.Job, Detail: c.Reason, Failure: s.Failure}
	if s.EndedAt != nil && s.StartedAt != nil {
		entry.Took = jobhost.Duration(now.Sub(*s.StartedAt))
	}
	if c.Status != jobhost.StepRetrying { // its attempt was noted
		w.note(entry)
	}
	f.tellWorkflowLocked(w, jobhost.Event{Kind: jobhost.EventStep, Step: s.Name, StepStatus: c.Status, Job: s.Job, Failure: s.Failure})
}

// stopLocked ends what is not wanted any more.
func (f *Fake) stopLocked(w *fakeWorkflow, out *course.Outcome) {
	for _, run := range out.Cancel {
		if job := f.jobs[w.course.ID(w.id, run)]; job != nil {
			for i := range job.tasks {
				if !job.tasks[i].State.Ended() {
					f.endLocked(job, i, jobhost.Cancelled, jobhost.EventCancelled, nil)
				}
			}
		}
	}
	for _, run := range out.Stop {
		if child := f.workflows.byID[w.children[run]]; child != nil {
			f.happenLocked(child, course.Event{What: course.Cancelled, Reason: "the workflow that it is a step of has ended"})
		}
	}
	for _, timer := range out.Unset {
		if t := w.timers[timer]; t != nil {
			t.Stop()
			delete(w.timers, timer)
		}
	}
}

// beginLocked begins what is wanted.
func (f *Fake) beginLocked(w *fakeWorkflow, out *course.Outcome) {
	for i := range out.Submit {
		f.submitStepLocked(w, &out.Submit[i])
	}
	for i := range out.Begin {
		f.beginChildLocked(w, &out.Begin[i])
	}
	for _, set := range out.Set {
		timer := set.Timer
		w.timers[timer] = time.AfterFunc(time.Until(set.At), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.happenLocked(w, course.Event{What: course.TimerDue, Timer: timer})
		})
	}
}

func (f *Fake) submitStepLocked(w *fakeWorkflow, s *course.Submit) {
	step := &w.definition.Steps[s.Run.Step]
	spec := jobhost.Spec{ID: s.ID, Worker: step.Worker, Entry: step.Entry, Tasks: s.Tasks, Timeout: time.Duration(step.Timeout), Labels: step.Labels}
	if s.Run.Fallback {
		spec.Worker, spec.Entry = step.Fallback, ""
	}
	if step.Retry != nil {
		spec.MaxAttempts = step.Retry.MaxAttempts
	}
	spec.Payload, _ = s.Payload.Compose(fakeData{f, w}.Read) // what is gone is nothing
	normalise(&spec)
	job := f.addJobLocked(&fakeJob{spec: spec, workflow: w, run: s.Run, items: s.Items})
	for i := range job.tasks {
		f.scheduleLocked(job, i)
	}
}

func (f *Fake) beginChildLocked(w *fakeWorkflow, b *course.Begin) {
	input, _ := b.Payload.Compose(fakeData{f, w}.Read)
	child, err := f.newWorkflowLocked(jobhost.WorkflowStart{ID: b.ID, Workflow: w.definition.Steps[b.Run.Step].Workflow, Input: input})
	if err != nil {
		f.happenLocked(w, course.Event{
			What: course.ChildEnded, Run: b.Run, Status: jobhost.WorkflowFailed,
			Failure: &jobhost.Failure{Code: jobhost.FailInternal, Message: err.Error()},
		})
		return
	}
	child.parent, child.parentRun = w, b.Run
	f.addWorkflowLocked(child)
}

func (f *Fake) endedLocked(w *fakeWorkflow, end *course.End) {
	now := time.Now().UTC()
	w.end, w.ended = *end, &now
	w.output, _ = end.Output.Compose(fakeData{f, w}.Read)
	w.note(jobhost.TraceEntry{What: string(end.Status), Detail: end.Reason, Failure: end.Failure, Took: jobhost.Duration(now.Sub(w.started))})
	f.tellWorkflowLocked(w, jobhost.Event{Kind: jobhost.EventWorkflowEnded, WorkflowStatus: end.Status, Failure: end.Failure})
	close(w.done)
	if w.parent != nil {
		f.happenLocked(w.parent, course.Event{What: course.ChildEnded, Run: w.parentRun, Status: end.Status, Failure: end.Failure, Output: w.output})
	}
}

// stepJobEndedLocked tells the workflow of a job that the job has ended.
func (f *Fake) stepJobEndedLocked(job *fakeJob) {
	if job.workflow == nil {
		return
	}
	e := course.Event{What: course.JobSucceeded, Run: job.run}
	switch job.state() {
	case jobhost.Dead:
		e.What = course.JobDead
		if n := len(job.failures); n > 0 {
			e.Failure = &job.failures[n-1]
		}
	case jobhost.Cancelled:
		e.What = course.JobCancelled
	}
	f.happenLocked(job.workflow, e)
}

// stepFailedLocked tells the workflow of a job that an attempt has failed.
func (f *Fake) stepFailedLocked(job *fakeJob, failure *jobhost.Failure, again bool) {
	if job.workflow == nil {
		return
	}
	job.workflow.note(jobhost.TraceEntry{
		Step: job.workflow.steps[job.run.Step].Name, What: "attempt", Job: job.spec.ID, Task: failure.Task, Attempt: failure.Attempt,
		Took: jobhost.Duration(failure.EndedAt.Sub(failure.StartedAt)), Failure: failure,
	})
	if again {
		f.happenLocked(job.workflow, course.Event{What: course.JobRetrying, Run: job.run, Failure: failure})
	}
}

func (w *fakeWorkflow) note(e jobhost.TraceEntry) {
	e.Time = time.Now().UTC()
	w.trace = append(w.trace, e)
}

func (f *Fake) tellWorkflowLocked(w *fakeWorkflow, e jobhost.Event) {
	e.Workflow = w.id
	f.hub.publish(e)
}

// fakeData is what expressions read of a workflow.
type fakeData struct {
	f *Fake
	w *fakeWorkflow
}

// Read implements [course.Reader].
func (d fakeData) Read(from course.Source) ([]byte, error) {
	switch from.Kind {
	case course.Input:
		return d.w.start.Input, nil
	case course.Kept:
		return d.w.kept[from.Slot], nil
	case course.Output:
		if child := d.f.workflows.byID[d.w.children[from.Run]]; child != nil {
			return child.output, nil
		}
	case course.Result, course.Results:
		job := d.f.jobs[d.w.course.ID(d.w.id, from.Run)]
		switch {
		case job == nil:
		case from.Kind == course.Result:
			return job.tasks[0].result, nil
		default:
			var list [][]byte
			for i := range job.tasks {
				list = append(list, asJSON(job.tasks[i].result))
			}
			return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
		}
	}
	return nil, course.ErrUnreadable
}

// Failure implements [course.Reader].
func (d fakeData) Failure(step int) (*jobhost.Failure, error) {
	return d.w.steps[step].lastFailure, nil
}

// Labels implements [course.Labeler].
func (d fakeData) Labels() map[string]string { return d.w.labels }

// asJSON returns what is no JSON as a string, or one in base64 if it is not text.
func asJSON(data []byte) json.RawMessage {
	if json.Valid(data) {
		return data
	}
	text := string(data)
	if !utf8.Valid(data) {
		text = base64.StdEncoding.EncodeToString(data)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil // no string makes one
	}
	return quoted
}
