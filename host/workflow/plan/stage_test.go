package plan

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// stage is where a workflow runs whose jobs end as a test says.
type stage struct {
	t       testing.TB
	plan    *Plan
	machine *machine.Machine
	record  []byte

	data     map[machine.Source][]byte
	read     map[machine.Source]bool
	broken   map[machine.Source]error
	failures map[int]*jobhost.Failure
	submits  map[string]machine.Submit // by step
	begins   map[string]machine.Begin
	end      *machine.End
}

func onStage(t testing.TB, w jobhost.Workflow, input string) *stage {
	t.Helper()
	if w.Name == "" {
		w.Name = "play"
	}
	p, err := Compile(w, Env{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Machine()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, plan: p, machine: c, data: map[machine.Source][]byte{{Kind: machine.Input}: []byte(input)},
		read: map[machine.Source]bool{}, broken: map[machine.Source]error{}, failures: map[int]*jobhost.Failure{},
		submits: map[string]machine.Submit{}, begins: map[string]machine.Begin{},
	}
	return s
}

func (s *stage) Read(from machine.Source) ([]byte, error) {
	s.read[from] = true
	return s.data[from], s.broken[from]
}

func (s *stage) Failure(step int) (*jobhost.Failure, error) { return s.failures[step], nil }
func (s *stage) Labels() map[string]string                  { return map[string]string{"tenant": "acme"} }

func (s *stage) Size(from machine.Source) (int64, error) {
	return int64(len(s.data[from])), s.broken[from]
}

// start begins, and returns the stage.
func (s *stage) start() *stage {
	s.t.Helper()
	s.must(machine.Event{What: machine.Started})
	return s
}

func (s *stage) must(e machine.Event) {
	s.t.Helper()
	if err := s.advance(e); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) advance(e machine.Event) error {
	e.At = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	out, err := s.machine.Advance("wf-1", s.record, &e, s)
	if err != nil {
		return err
	}
	s.record = out.Record
	for _, c := range out.Changes {
		if c.Failure != nil {
			s.failures[c.Step] = c.Failure
		}
	}
	for _, k := range out.Keep {
		s.data[machine.Source{Kind: machine.Kept, Slot: k.Slot}] = k.Data
	}
	for _, job := range out.Submit {
		s.submits[s.plan.Workflow.Steps[job.Run.Step].Name] = job
	}
	for _, b := range out.Begin {
		s.begins[s.plan.Workflow.Steps[b.Run.Step].Name] = b
	}
	if out.End != nil {
		s.end = out.End
	}
	return nil
}

// succeed ends a step's job, whose output is not at hand.
func (s *stage) succeed(step, output string) {
	s.t.Helper()
	i, run := s.run(step)
	from := machine.Source{Kind: machine.Result, Run: run}
	if many(&s.plan.Workflow.Steps[i]) {
		from.Kind = machine.Results
	}
	s.data[from] = []byte(output)
	s.must(machine.Event{What: machine.JobSucceeded, Run: run})
}

func (s *stage) fail(step, message string) {
	s.t.Helper()
	_, run := s.run(step)
	s.must(machine.Event{What: machine.JobDead, Run: run, Failure: &jobhost.Failure{Code: "boom", Category: jobhost.CategoryNetwork, Message: message}})
}

func (s *stage) run(step string) (int, machine.Run) {
	s.t.Helper()
	look, err := s.machine.Look(s.record)
	if err != nil {
		s.t.Fatal(err)
	}
	i := s.source(step)
	return i, look.Run(i)
}

func (s *stage) source(step string) int {
	s.t.Helper()
	found, ok := s.plan.Step(step)
	if !ok {
		s.t.Fatalf("there is no step %s", step)
	}
	return found.Source
}

func (s *stage) status(step string) jobhost.StepStatus {
	s.t.Helper()
	look, err := s.machine.Look(s.record)
	if err != nil {
		s.t.Fatal(err)
	}
	return look.Step(s.source(step))
}

// payload returns what a step's job has got.
func (s *stage) payload(step string) string {
	s.t.Helper()
	job, ok := s.submits[step]
	if !ok {
		s.t.Fatalf("step %s has no job; it is %s, %+v", step, s.status(step), s.failures[s.source(step)])
	}
	return s.compose(&job.Payload)
}

func (s *stage) compose(p *machine.Payload) string {
	s.t.Helper()
	data, err := p.Compose(func(from machine.Source) ([]byte, error) { return s.data[from], nil })
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}
