package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// shownOutputs bounds the total size of the step outputs shown, in bytes.
const shownOutputs = 1 << 20

// Workflow describes a workflow: see [jobhost.WorkflowRunner].
func (e *Engine) Workflow(ctx context.Context, id string) (run jobhost.WorkflowRun, err error) {
	err = e.store.ViewWorkflows(ctx, func(v record.WorkflowView) error {
		w, err := v.WorkflowByID(id)
		if err != nil {
			return err
		}
		if w == nil {
			return notFound(id)
		}
		run = describe(w)
		def, err := e.definition(v, w.Definition)
		if err != nil {
			run.Reason = err.Error()
			return nil //nolint:nilerr // show what is known without it
		}
		s := &show{view: v, row: &row{w, def}, reader: &reader{view: v, row: &row{w, def}}}
		return s.fill(&run)
	})
	if err != nil {
		return jobhost.WorkflowRun{}, fmt.Errorf("read workflow: %w", err)
	}
	return run, nil
}

// describe returns the part of a description that lists have.
func describe(w *record.WorkflowRecord) jobhost.WorkflowRun {
	return jobhost.WorkflowRun{
		ID: w.ID, Name: w.Name, Status: statusOf(w.Status), Labels: w.Labels, Definition: w.Definition,
		Parent: w.ParentID, ParentStep: w.ParentStep, StartedAt: w.StartedAt.Time(), EndedAt: timeOrNil(w.EndedAt),
		Step: w.Ending.Step, Reason: w.Ending.Reason, Failure: w.Ending.Failure,
	}
}

func timeOrNil(m record.Millis) *time.Time {
	if m == 0 {
		return nil
	}
	t := m.Time()
	return &t
}

// show collects the description of a workflow.
type show struct {
	view   record.WorkflowView
	row    *row
	reader *reader
	shown  int // bytes of step outputs so far
}

func (s *show) fill(run *jobhost.WorkflowRun) error {
	if s.row.Status == record.WorkflowCompleted {
		run.OutputSize = s.row.Ending.OutputSize
		if s.row.Ending.OutputRef == "" && run.OutputSize <= jobhost.MaxStepOutput {
			data, err := s.view.WorkflowData(s.row.Key, outputSlot)
			if err != nil {
				return err
			}
			run.Output = json.RawMessage(machine.AsJSON(data))
		}
	}
	records, err := s.view.WorkflowSteps(s.row.Key)
	if err != nil {
		return err
	}
	look, err := s.row.def.machine.Look(s.row.Record)
	if err != nil {
		run.Reason = err.Error()
		return nil //nolint:nilerr // show what is known without the record
	}
	run.Steps = make([]jobhost.StepRun, len(s.row.def.Workflow.Steps))
	for i := range run.Steps {
		run.Steps[i] = jobhost.StepRun{Name: s.row.def.name(i), Status: look.Step(i)}
	}
	for i := range records {
		if err := s.step(&run.Steps[records[i].Step], &records[i], look); err != nil {
			return err
		}
	}
	return nil
}

// step describes a step that has started or ended.
func (s *show) step(to *jobhost.StepRun, r *record.StepRecord, look *machine.Look) error {
	step := s.row.def.step(r.Step)
	to.Reason, to.Tasks, to.Failure = r.Reason, r.Tasks, r.Failure
	if !r.Fallback && (to.Status == jobhost.StepCompleted || to.Status == jobhost.StepRunning || to.Status == jobhost.StepPending) {
		to.Failure = nil // of an earlier run
	}
	if r.Fallback {
		to.Fallback = step.Fallback
	}
	to.StartedAt, to.EndedAt = timeOrNil(r.StartedAt), timeOrNil(r.EndedAt)
	run := look.Run(r.Step)
	if to.Runs = int(run.Number); run.Number > 0 {
		switch {
		case s.row.def.runsJob(run) && r.Tasks > 0:
			to.Job = s.row.def.machine.ID(s.row.ID, run)
		case step.Workflow != "" && !run.Fallback:
			to.Workflow = s.row.def.machine.ChildID(s.row.ID, run)
		}
	}
	if to.Status != jobhost.StepCompleted {
		return nil
	}
	source := look.Output(r.Step)
	size, ref, err := s.reader.size(source)
	if err == nil && (ref != "" || size > jobhost.MaxStepOutput || int64(s.shown)+size > shownOutputs) {
		to.OutputSize = size
		return nil
	}
	var c content
	if err == nil {
		c, err = s.reader.find(source)
	}
	switch {
	case errors.Is(err, machine.ErrUnreadable):
		if e, ok := errors.AsType[*jobhost.Error](err); ok {
			to.Reason = e.Message
		}
		return nil
	case err != nil:
		return err
	}
	to.OutputSize = c.size
	if c.ref == "" && c.size <= jobhost.MaxStepOutput {
		s.shown += len(c.data)
		to.Output = json.RawMessage(machine.AsJSON(c.data))
	}
	return nil
}

// DefinitionOf returns the definition that a workflow runs: see [jobhost.WorkflowDefiner].
func (e *Engine) DefinitionOf(ctx context.Context, id string) (w jobhost.Workflow, err error) {
	err = e.store.ViewWorkflows(ctx, func(v record.WorkflowView) error {
		record, err := v.WorkflowByID(id)
		if err != nil {
			return err
		}
		if record == nil {
			return notFound(id)
		}
		def, err := e.definition(v, record.Definition)
		if err != nil {
			return err
		}
		w = def.Workflow
		return nil
	})
	if err != nil {
		return jobhost.Workflow{}, fmt.Errorf("read definition: %w", err)
	}
	return w, nil
}

// Definitions returns the named definitions, sorted by name.
func (e *Engine) Definitions(context.Context) ([]jobhost.Workflow, error) { return e.defs.all(), nil }

// Definition returns the definition with a name.
func (e *Engine) Definition(_ context.Context, name string) (jobhost.Workflow, error) {
	if d := e.defs.byName(name); d != nil {
		return d.Workflow, nil
	}
	return jobhost.Workflow{}, e.defs.missing(name)
}

// CheckWorkflow checks a definition: see [jobhost.WorkflowDefiner]. It isn't cached, which is for those that
// run.
func (e *Engine) CheckWorkflow(_ context.Context, w jobhost.Workflow) error {
	env, _ := e.defs.env()
	p, err := plan.Compile(w, env())
	if err == nil {
		_, err = newDefinition(p, p.Hash)
	}
	return err
}
