package hosttest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/course"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// fakeWorkflows are the workflows of a fake. What becomes of them is decided as in a
// host, by package course; their jobs are jobs of the fake.
type fakeWorkflows struct {
	byID     map[string]*fakeWorkflow
	order    []*fakeWorkflow // by key
	lastKey  int
	happened []fakeHappening // that no workflow was told of yet
	telling  bool            // somebody goes through them
}

// fakeHappening is something that happened to a workflow.
type fakeHappening struct {
	workflow *fakeWorkflow
	event    course.Event
}

// fakeWorkflow is a workflow of a fake.
type fakeWorkflow struct {
	key        int
	id         string
	start      jobhost.WorkflowStart
	definition jobhost.Workflow
	hash       string
	course     *course.Course
	record     []byte
	labels     map[string]string

	parent    *fakeWorkflow // that this one is a step of; nil = none
	parentRun course.Run

	started  time.Time
	ended    *time.Time
	done     chan struct{} // closed when it has ended
	end      course.End
	output   []byte
	steps    []fakeStep // in the order of the definition
	kept     map[int][]byte
	children map[course.Run]string
	timers   map[course.Timer]*time.Timer
	trace    []jobhost.TraceEntry
}

// fakeStep is what is known of a step, but for its status.
type fakeStep struct {
	jobhost.StepRun
	lastFailure *jobhost.Failure
}

// Definitions returns the definitions that a server under test must have, sorted by name.
func Definitions() []jobhost.Workflow {
	echo := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: FakeWorker, Entry: "echo", Needs: needs}
	}
	ask := jobhost.Step{Name: "ask", Signal: "approved"}
	after := echo("publish", "ask")
	return []jobhost.Workflow{
		{Name: "approval", Description: "Waits until somebody approves.", Steps: []jobhost.Step{ask, after}},
		{Name: "chain", Labels: map[string]string{"kind": "chain"}, Steps: []jobhost.Step{echo("first"), echo("second", "first")}},
		{Name: "nested", Steps: []jobhost.Step{{Name: "inner", Workflow: "approval"}, echo("last", "inner")}},
	}
}

// definitionLocked returns a definition by its name.
func (f *Fake) definitionLocked(name string) (jobhost.Workflow, error) {
	for _, w := range Definitions() {
		if w.Name == name {
			return w, nil
		}
	}
	return jobhost.Workflow{}, problem(jobhost.CodeNotFound, "workflow", "there is no workflow %q", name)
}

func compile(w jobhost.Workflow) (*plan.Plan, error) {
	others := map[string]*jobhost.Workflow{}
	for _, other := range Definitions() {
		others[other.Name] = &other
	}
	return plan.Compile(w, plan.Env{Workers: map[string]plan.Worker{FakeWorker: {}}, Workflows: others})
}

// Definitions implements [jobhost.WorkflowDefiner].
func (f *Fake) Definitions(context.Context) ([]jobhost.Workflow, error) { return Definitions(), nil }

// Definition implements [jobhost.WorkflowDefiner].
func (f *Fake) Definition(_ context.Context, name string) (jobhost.Workflow, error) {
	return f.definitionLocked(name)
}

// OpenWorkflowOutput implements [jobhost.WorkflowRunner].
func (f *Fake) OpenWorkflowOutput(_ context.Context, id string) (jobhost.Content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return jobhost.Content{}, err
	}
	if run := w.describe(false); run.Status != jobhost.WorkflowCompleted {
		return jobhost.Content{}, &jobhost.Error{Code: jobhost.CodeConflict, Message: "workflow " + id + " has no output: it is " + string(run.Status)}
	}
	return contentOf(w.output), nil
}

// DefinitionOf implements [jobhost.WorkflowDefiner].
func (f *Fake) DefinitionOf(_ context.Context, id string) (jobhost.Workflow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return jobhost.Workflow{}, err
	}
	return w.definition, nil
}

// CheckWorkflow implements [jobhost.WorkflowDefiner].
func (f *Fake) CheckWorkflow(_ context.Context, w jobhost.Workflow) error {
	_, err := compile(w)
	return err
}

// StartWorkflow implements [jobhost.WorkflowRunner].
func (f *Fake) StartWorkflow(_ context.Context, start jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	var none jobhost.WorkflowReceipt
	if err := start.Check(); err != nil {
		return none, err
	}
	if len(start.Input) > f.cfg.MaxPayload {
		return none, problem(jobhost.CodeTooLarge, "input", "the input is larger than %d", f.cfg.MaxPayload)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return none, problem(jobhost.CodeUnavailable, "", "the host is stopping")
	}
	w, err := f.newWorkflowLocked(start)
	if err != nil {
		return none, err
	}
	if old := f.workflows.byID[w.id]; old != nil {
		if !old.same(w) {
			return none, problem(jobhost.CodeConflict, "id", "workflow %s is there with other content", w.id)
		}
		return jobhost.WorkflowReceipt{ID: old.id, Status: old.status(), Deduplicated: true}, nil
	}
	f.addWorkflowLocked(w)
	return jobhost.WorkflowReceipt{ID: w.id, Status: w.status()}, nil
}

// newWorkflowLocked makes a workflow, which is not there yet.
func (f *Fake) newWorkflowLocked(start jobhost.WorkflowStart) (*fakeWorkflow, error) {
	definition := start.Definition
	if definition == nil {
		known, err := f.definitionLocked(start.Workflow)
		if err != nil {
			return nil, err
		}
		definition = &known
	}
	p, err := compile(*definition)
	if err != nil {
		return nil, err
	}
	c, err := p.Course()
	if err != nil {
		return nil, err
	}
	w := &fakeWorkflow{
		id: cmp.Or(start.ID, jobhost.WorkflowIDPrefix+jobhost.NewID()), start: start, definition: p.Workflow, hash: p.Hash, course: c,
		done: make(chan struct{}), started: time.Now().UTC().Truncate(time.Millisecond), labels: maps.Clone(definition.Labels),
		kept: map[int][]byte{}, children: map[course.Run]string{}, timers: map[course.Timer]*time.Timer{},
	}
	w.start.Input = bytes.Clone(start.Input)
	if w.labels == nil {
		w.labels = map[string]string{}
	}
	maps.Copy(w.labels, start.Labels)
	for _, s := range w.definition.Steps {
		w.steps = append(w.steps, fakeStep{StepRun: jobhost.StepRun{Name: s.Name}})
	}
	return w, nil
}

// addWorkflowLocked lets a workflow begin.
func (f *Fake) addWorkflowLocked(w *fakeWorkflow) {
	f.workflows.lastKey++
	w.key = f.workflows.lastKey
	f.workflows.byID[w.id] = w
	f.workflows.order = append(f.workflows.order, w)
	w.note(jobhost.TraceEntry{What: "started"})
	f.tellWorkflowLocked(w, jobhost.Event{Kind: jobhost.EventWorkflowStarted, WorkflowStatus: jobhost.WorkflowRunning})
	f.happenLocked(w, course.Event{What: course.Started})
}

// same reports whether a workflow was started in the same way.
func (w *fakeWorkflow) same(other *fakeWorkflow) bool {
	a, b := &w.start, &other.start
	return a.Workflow == b.Workflow && w.hash == other.hash && bytes.Equal(a.Input, b.Input) &&
		maps.Equal(a.Labels, b.Labels) && a.Retention == b.Retention
}

func (f *Fake) findWorkflowLocked(id string) (*fakeWorkflow, error) {
	if err := jobhost.CheckAnyWorkflowID(id); err != nil {
		return nil, err
	}
	if w := f.workflows.byID[id]; w != nil {
		return w, nil
	}
	return nil, problem(jobhost.CodeNotFound, "id", "there is no workflow %s", id)
}

func (w *fakeWorkflow) status() jobhost.WorkflowStatus {
	look, err := w.course.Look(w.record)
	if err != nil {
		return jobhost.WorkflowRunning // it is just starting
	}
	return look.Status()
}

// describe tells of a workflow, with its output and its steps if full.
func (w *fakeWorkflow) describe(full bool) jobhost.WorkflowRun {
	run := jobhost.WorkflowRun{
		ID: w.id, Name: w.definition.Name, Status: w.status(), Labels: maps.Clone(w.labels), Definition: w.hash,
		StartedAt: w.started, EndedAt: w.ended,
	}
	if w.parent != nil {
		run.Parent, run.ParentStep = w.parent.id, w.parent.definition.Steps[w.parentRun.Step].Name
	}
	if run.Status.Ended() {
		run.Reason, run.Failure = w.end.Reason, w.end.Failure
		if w.end.Step != course.None {
			run.Step = w.steps[w.end.Step].Name
		}
	}
	if !full {
		return run
	}
	if run.Status == jobhost.WorkflowCompleted {
		run.Output, run.OutputSize = shown(w.output)
	}
	if look, err := w.course.Look(w.record); err == nil {
		for i := range w.steps {
			s := w.steps[i].StepRun
			s.Status = look.Step(i)
			run.Steps = append(run.Steps, s)
		}
	}
	return run
}

// shown returns data for people, or how large they are.
func shown(data []byte) (json.RawMessage, int64) {
	if len(data) > jobhost.MaxStepOutput {
		return nil, int64(len(data))
	}
	return asJSON(data), int64(len(data))
}

// Workflow implements [jobhost.WorkflowRunner].
func (f *Fake) Workflow(_ context.Context, id string) (jobhost.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	return w.describe(true), nil
}

// Workflows implements [jobhost.WorkflowRunner]. Cursors are keys.
func (f *Fake) Workflows(_ context.Context, filter jobhost.WorkflowFilter) (jobhost.WorkflowPage, error) {
	below, err := int(^uint(0)>>1), filter.Check()
	if filter.Cursor != "" {
		var bad error
		if below, bad = strconv.Atoi(filter.Cursor); bad != nil {
			err = errors.Join(err, problem(jobhost.CodeInvalid, "cursor", "the cursor is not one that a list returned"))
		}
	}
	if err != nil {
		return jobhost.WorkflowPage{}, err
	}
	limit := cmp.Or(filter.Limit, 50)
	f.mu.Lock()
	defer f.mu.Unlock()
	var page jobhost.WorkflowPage
	for _, w := range slices.Backward(f.workflows.order) {
		if w.key >= below || !w.matches(&filter) {
			continue
		}
		if len(page.Workflows) == limit {
			page.Next = strconv.Itoa(below)
			break
		}
		page.Workflows = append(page.Workflows, w.describe(false))
		below = w.key
	}
	return page, nil
}

func (w *fakeWorkflow) matches(f *jobhost.WorkflowFilter) bool {
	return (f.Name == "" || f.Name == w.definition.Name) && (f.Status == "" || f.Status == w.status()) &&
		(f.Parent == "" || w.parent != nil && w.parent.id == f.Parent) &&
		!w.started.Before(f.After) && (f.Before.IsZero() || w.started.Before(f.Before))
}

// WaitWorkflow implements [jobhost.WorkflowRunner].
func (f *Fake) WaitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	for {
		f.mu.Lock()
		w, err := f.findWorkflowLocked(id)
		if err != nil {
			f.mu.Unlock()
			return jobhost.WorkflowRun{}, err
		}
		now, done := w.describe(true), w.done
		f.mu.Unlock()
		if now.Status.Ended() {
			return now, nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// TraceWorkflow implements [jobhost.WorkflowRunner].
func (f *Fake) TraceWorkflow(_ context.Context, id string) ([]jobhost.TraceEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return nil, err
	}
	return slices.Clone(w.trace), nil
}
