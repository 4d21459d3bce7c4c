package flowtest

import (
	"fmt"
	"maps"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Run is a run of a workflow.
type Run struct {
	kit    *Kit
	def    *definition
	id     string
	labels map[string]string
	record []byte
	parent *Run // of which it is a step
	of     machine.Run

	data     map[machine.Source][]byte
	steps    []progress
	jobs     map[machine.Run]*job
	children map[machine.Run]*Run
	timers   map[machine.Timer]*event
	trace    Trace
	started  time.Time
	ended    time.Time
	end      *machine.End
	output   []byte
}

// progress is what is known about a step besides the record.
type progress struct {
	change         machine.Change // the last one
	failure        *jobhost.Failure
	started, ended time.Time
	attempts, runs int
}

func (k *Kit) newRun(name, id string, input []byte, labels map[string]string) *Run {
	r := &Run{
		kit: k, def: k.flows[name], id: id, labels: map[string]string{}, started: k.now,
		data: map[machine.Source][]byte{{Kind: machine.Input}: input}, jobs: map[machine.Run]*job{},
		children: map[machine.Run]*Run{}, timers: map[machine.Timer]*event{},
	}
	if r.def == nil { // the test has failed
		return r
	}
	r.steps = make([]progress, len(r.def.plan.Workflow.Steps))
	maps.Copy(r.labels, r.def.plan.Workflow.Labels)
	maps.Copy(r.labels, labels)
	r.tell(jobhost.TraceEntry{What: "started"})
	return r
}

// ID returns the id of the workflow: wf-1 for the first that a kit starts, and so on.
func (r *Run) ID() string { return r.id }

// Name returns the name of the workflow.
func (r *Run) Name() string {
	if r.def == nil {
		return ""
	}
	return r.def.plan.Workflow.Name
}

// memory is a run in the form that its course reads.
type memory struct{ *Run }

// Read implements [machine.Reader].
func (m memory) Read(s machine.Source) ([]byte, error) {
	data, found := m.data[s]
	if !found {
		return nil, fmt.Errorf("%w: there is nothing at %+v", machine.ErrUnreadable, s)
	}
	return data, nil
}

// Failure implements [machine.Reader].
func (m memory) Failure(step int) (*jobhost.Failure, error) { return m.steps[step].failure, nil }

// Labels implements [machine.Labeler].
func (m memory) Labels() map[string]string { return m.labels }

// Size implements [machine.Sizer].
func (m memory) Size(s machine.Source) (int64, error) {
	data, err := m.Read(s)
	return int64(len(data)), err
}

func (r *Run) compose(p *machine.Payload) []byte {
	data, err := p.Compose(memory{r}.Read)
	if err != nil {
		r.kit.fatalf("workflow %s: %v", r.Name(), err)
	}
	return data
}

// deliver informs the workflow of an event.
func (r *Run) deliver(e machine.Event) {
	if refused := r.try(e); refused != nil {
		r.kit.fatalf("workflow %s: %v", r.Name(), refused) // only requests are refused
	}
}

// try is deliver for requests of a test. The error says why a request is refused.
func (r *Run) try(e machine.Event) *jobhost.Error {
	if r.kit.failed {
		return nil
	}
	e.At = r.kit.now
	out, err := r.def.machine.Advance(r.id, r.record, &e, memory{r})
	if err != nil {
		r.kit.fatalf("workflow %s: %v", r.Name(), err)
		return nil
	}
	if out.Record == nil {
		return out.Refused
	}
	r.record = out.Record
	r.apply(&out)
	return nil
}

// apply carries out the outcome of an event.
func (r *Run) apply(out *machine.Outcome) {
	for _, k := range out.Keep {
		r.data[machine.Source{Kind: machine.Kept, Slot: k.Slot}] = present(k.Data)
	}
	if out.Resumed {
		r.end, r.ended, r.output = nil, time.Time{}, nil
		r.tell(jobhost.TraceEntry{What: "started", Detail: "again"})
	}
	for i := range out.Changes {
		r.changed(&out.Changes[i])
	}
	for _, run := range out.Cancel {
		if j := r.jobs[run]; j != nil {
			j.cancel()
		}
	}
	for _, run := range out.Stop {
		if child := r.children[run]; child != nil {
			child.deliver(machine.Event{What: machine.Cancelled, Reason: "the workflow that it is a step of did"})
		}
	}
	for _, timer := range out.Unset {
		if e := r.timers[timer]; e != nil {
			e.gone = true
		}
	}
	for i := range out.Submit {
		r.submit(&out.Submit[i])
	}
	for i := range out.Begin {
		r.begin(&out.Begin[i])
	}
	for _, set := range out.Set {
		timer := set.Timer
		r.timers[timer] = r.kit.at(set.At, func() { r.deliver(machine.Event{What: machine.TimerDue, Timer: timer}) })
	}
	if out.Resumed && r.parent != nil {
		r.kit.soon(func() { r.parent.deliver(machine.Event{What: machine.ChildResumed, Run: r.of}) })
	}
	if out.End != nil {
		r.finish(out.End)
	}
}

// begin starts a workflow that is a step.
func (r *Run) begin(b *machine.Begin) {
	step := &r.def.plan.Workflow.Steps[b.Run.Step]
	child := r.kit.newRun(step.Workflow, b.ID, r.compose(&b.Payload), step.Labels)
	child.parent, child.of = r, b.Run
	r.children[b.Run] = child
	r.kit.soon(func() { child.deliver(machine.Event{What: machine.Started}) })
}

// finish handles the end of the workflow.
func (r *Run) finish(end *machine.End) {
	r.end, r.ended = end, r.kit.now
	e := jobhost.TraceEntry{What: string(end.Status), Detail: end.Reason, Failure: end.Failure, Took: jobhost.Duration(r.ended.Sub(r.started))}
	if end.Status == jobhost.WorkflowCompleted {
		r.output = r.compose(&end.Output)
	}
	r.tell(e)
	if r.parent == nil {
		return
	}
	event := machine.Event{What: machine.ChildEnded, Run: r.of, Status: end.Status, Failure: end.Failure}
	if end.Status == jobhost.WorkflowCompleted {
		event.Output = present(r.output)
		r.parent.data[machine.Source{Kind: machine.Output, Run: r.of}] = event.Output
	}
	r.kit.soon(func() { r.parent.deliver(event) })
}
