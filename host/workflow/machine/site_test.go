package machine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// fataler is a test, or a check of rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// link fills in what follows from the needs and fallbacks of steps, which are
// given by name. A fallback that is no step is a worker.
func link(steps []machine.Node, needs, fallbacks map[string]string) *machine.Graph {
	g := &machine.Graph{Digest: 7, Steps: steps, Output: machine.None}
	index := map[string]int{}
	for i := range steps {
		index[steps[i].Name] = i
		steps[i].Fallback, steps[i].FallbackOf = machine.None, machine.None
		steps[i].Needs, steps[i].Next = nil, nil
	}
	for i := range steps {
		for _, name := range strings.Fields(needs[steps[i].Name]) {
			j := index[name]
			steps[i].Needs = append(steps[i].Needs, int32(j))
			steps[j].Next = append(steps[j].Next, int32(i))
		}
		name := fallbacks[steps[i].Name]
		if j, isStep := index[name]; isStep {
			steps[i].Fallback, steps[j].FallbackOf = j, i
		} else {
			steps[i].FallbackWorker = name != ""
		}
	}
	return g
}

// answers are what expressions come to.
type answers struct {
	site      *site
	when      map[int]string // "false", "error"; true otherwise
	terminate map[int]string // "true", "error"
	fanOut    map[int]int    // elements; −1 = error
	input     map[int]string // "error"
	output    string         // "error", "unreadable"
}

var errExpression = errors.New("no such key: x")

func (a *answers) answer(step int, v *machine.View, text string) (bool, error) {
	a.site.begins(step, v)
	if text == "error" {
		return false, errExpression
	}
	return text == "true", nil
}

func (a *answers) When(step int, v *machine.View) (bool, error) {
	text := a.when[step]
	if text == "" {
		text = "true"
	}
	return a.answer(step, v, text)
}

func (a *answers) Terminate(step int, v *machine.View) (bool, error) {
	if _, err := v.Output(step); err != nil || v.Status(step) != jobhost.StepCompleted {
		a.site.t.Fatalf("terminate of step %d sees %s, %v", step, v.Status(step), err)
	}
	return a.answer(step, v, a.terminate[step])
}

func (a *answers) Input(step int, v *machine.View) (machine.Payload, error) {
	_, err := a.answer(step, v, a.input[step])
	return machine.Payload{Data: []byte("in")}, err
}

func (a *answers) FanOut(step int, v *machine.View) ([][]byte, error) {
	if a.fanOut[step] < 0 {
		return nil, errExpression
	}
	_, err := a.answer(step, v, "")
	items := make([][]byte, a.fanOut[step])
	for i := range items {
		items[i] = fmt.Append(nil, i)
	}
	return items, err
}

func (a *answers) Output(v *machine.View) (machine.Payload, error) {
	if a.output == "error" {
		return machine.Payload{}, errExpression
	}
	out := map[string]json.RawMessage{}
	for i, node := range a.site.graph.Steps {
		data, err := v.Output(i)
		if err != nil {
			return machine.Payload{}, err
		}
		out[node.Name] = data
	}
	data, err := json.Marshal(out)
	return machine.Payload{Data: data}, err
}

// site is a store and a queue, as a workflow sees them. It holds each answer
// against what must always be.
type site struct {
	t       fataler
	id      string
	graph   *machine.Graph
	machine *machine.Machine
	eval    *answers
	now     time.Time
	record  []byte

	jobs, children map[machine.Run]string // open ones, with what they are for
	timers         map[machine.Timer]time.Time
	ids            map[string]bool // that were used
	ends           map[machine.Run]machine.Happening
	data           map[int][]byte // kept
	rows           map[int]*machine.Change
	failures       map[int]*jobhost.Failure
	end            *machine.End
	log            []string
	broken         error // of the reader
}

func newSite(t fataler, g *machine.Graph, eval *answers) *site {
	t.Helper()
	s := &site{
		t: t, id: "wf-x", graph: g, eval: eval, now: time.Unix(1e9, 0).UTC(),
		jobs: map[machine.Run]string{}, children: map[machine.Run]string{}, timers: map[machine.Timer]time.Time{},
		ids: map[string]bool{}, ends: map[machine.Run]machine.Happening{}, data: map[int][]byte{},
		rows: map[int]*machine.Change{}, failures: map[int]*jobhost.Failure{},
	}
	eval.site = s
	c, err := machine.New(g, eval)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.machine = c
	return s
}

// begins checks that a step runs only after those that it needs.
func (s *site) begins(step int, v *machine.View) {
	for _, need := range s.graph.Steps[step].Needs {
		if !v.Status(int(need)).Ended() {
			s.t.Fatalf("step %d begins while step %d that it needs is %s", step, need, v.Status(int(need)))
		}
		if _, err := v.Output(int(need)); err != nil && s.broken == nil {
			s.t.Fatalf("output of step %d: %v", need, err)
		}
		f, err := v.Failure(int(need))
		switch status := v.Status(int(need)); {
		case err != nil, status == jobhost.StepCancelled: // it has one if it was cancelled by hand
		case (f != nil) != (status == jobhost.StepFailed):
			s.t.Fatalf("step %d is %s with failure %v", need, status, f)
		}
	}
}

func (s *site) Read(source machine.Source) ([]byte, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	switch source.Kind {
	case machine.Input:
		return []byte(`{"n":1}`), nil
	case machine.Result, machine.Results, machine.Output:
		if end := s.ends[source.Run]; end != machine.JobSucceeded && end != machine.ChildEnded {
			s.t.Fatalf("%v is read, which ended with %d", source, end)
		}
		return fmt.Appendf(nil, `"%s.%d"`, s.graph.Steps[source.Run.Step].Name, source.Run.Number), nil
	case machine.Kept:
		if data, found := s.data[source.Slot]; found {
			return data, nil
		}
	}
	s.t.Fatalf("there is nothing at %v", source)
	return nil, nil
}

func (s *site) Failure(step int) (*jobhost.Failure, error) { return s.failures[step], s.broken }

// advance delivers an event and returns whether it changed anything.
func (s *site) advance(e machine.Event) bool {
	s.t.Helper()
	out, changed := s.try(e)
	if !changed {
		return false
	}
	s.record = out.Record
	s.apply(&out)
	s.check()
	return true
}

func (s *site) try(e machine.Event) (machine.Outcome, bool) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	e.At = s.now
	s.note(&e)
	before := slices.Clone(s.record)
	out, err := s.machine.Advance(s.id, s.record, &e, s)
	again, errAgain := s.machine.Advance(s.id, s.record, &e, s)
	if err != nil || errAgain != nil {
		s.t.Fatalf("advance by %+v: %v, %v", e, err, errAgain)
	}
	if !reflect.DeepEqual(out, again) || !bytes.Equal(before, s.record) {
		s.t.Fatalf("the same event has two outcomes:\n%+v\n%+v", out, again)
	}
	if out.Record == nil && !reflect.DeepEqual(out, machine.Outcome{Refused: out.Refused}) {
		s.t.Fatalf("nothing changed, and yet there is something to do: %+v", out)
	}
	return out, out.Record != nil
}

// note remembers how runs ended.
func (s *site) note(e *machine.Event) {
	switch e.What {
	case machine.JobSucceeded, machine.JobDead, machine.JobCancelled, machine.ChildEnded:
		if s.jobs[e.Run] != "" || s.children[e.Run] != "" {
			s.ends[e.Run] = e.What
			switch e.Status {
			case jobhost.WorkflowFailed:
				s.ends[e.Run] = machine.JobDead
			case jobhost.WorkflowCancelled:
				s.ends[e.Run] = machine.JobCancelled
			}
		}
		delete(s.jobs, e.Run)
		delete(s.children, e.Run)
	case machine.TimerDue:
		delete(s.timers, e.Timer)
	}
}

func (s *site) apply(out *machine.Outcome) {
	s.t.Helper()
	if s.end != nil && !out.Resumed || out.Resumed && (s.end == nil || s.end.Status != jobhost.WorkflowFailed) {
		s.t.Fatalf("a workflow that has ended goes on, or one resumes that didn't fail: %+v", out)
	}
	if out.Resumed {
		s.end = nil
		s.logf("resumed")
	}
	for _, k := range out.Keep {
		if _, found := s.data[k.Slot]; found {
			s.t.Fatalf("slot %d is used twice", k.Slot)
		}
		s.data[k.Slot] = k.Data
	}
	for i := range out.Changes {
		c := &out.Changes[i]
		s.rows[c.Step] = c
		if c.Failure != nil {
			s.failures[c.Step] = c.Failure
		}
		s.logf("%s:%s", s.graph.Steps[c.Step].Name, c.Status)
	}
	for _, run := range out.Cancel {
		s.take(s.jobs, run, "cancel")
	}
	for _, run := range out.Stop {
		s.take(s.children, run, "stop")
	}
	for _, timer := range out.Unset {
		if _, found := s.timers[timer]; !found {
			s.t.Fatalf("timer %v is unset that is not set", timer)
		}
		delete(s.timers, timer)
	}
	for i := range out.Submit {
		s.open(s.jobs, out.Submit[i].Run, out.Submit[i].ID, "submit", &out.Submit[i].Payload)
	}
	for i := range out.Begin {
		s.open(s.children, out.Begin[i].Run, out.Begin[i].ID, "begin", &out.Begin[i].Payload)
	}
	for _, set := range out.Set {
		s.use(set.ID)
		s.timers[set.Timer] = set.At
	}
	if out.End != nil {
		s.end = out.End
		s.logf("workflow:%s", out.End.Status)
	}
}

func (s *site) take(open map[machine.Run]string, run machine.Run, verb string) {
	s.t.Helper()
	if open[run] == "" {
		s.t.Fatalf("%s of %v, which is not open", verb, run)
	}
	delete(open, run)
	s.ends[run] = machine.JobCancelled
	s.logf("%s %s", verb, s.name(run))
}

func (s *site) open(open map[machine.Run]string, run machine.Run, id, verb string, payload *machine.Payload) {
	s.t.Helper()
	s.use(id)
	if _, err := payload.Compose(s.Read); err != nil {
		s.t.Fatalf("payload of %v: %v", run, err)
	}
	open[run] = id
	s.logf("%s %s", verb, s.name(run))
}

func (s *site) use(id string) {
	s.t.Helper()
	if s.ids[id] {
		s.t.Fatalf("id %s is used twice", id)
	}
	if err := jobhost.CheckID(id); err != nil {
		s.t.Fatalf("%v", err)
	}
	s.ids[id] = true
}

func (s *site) name(run machine.Run) string {
	return strings.TrimPrefix(s.machine.ID(s.id, run), s.id+".")
}

func (s *site) logf(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }

// check holds the state after an event against what must always be.
func (s *site) check() {
	s.t.Helper()
	look, err := s.machine.Look(s.record)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	busy := len(s.jobs) + len(s.children)
	switch {
	case s.end == nil && (look.Status() != jobhost.WorkflowRunning || look.Open() == 0):
		s.t.Fatalf("the workflow is %s with %d open steps, and has not ended", look.Status(), look.Open())
	case s.end == nil && busy+len(s.timers) == 0 && !s.waits(look):
		s.t.Fatalf("nothing can happen any more: %s", s.statuses())
	case s.end != nil && (look.Status() != s.end.Status || look.Open() != 0 || busy+len(s.timers) != 0):
		s.t.Fatalf("the workflow is %s and %s, with %v %v %v", look.Status(), s.end.Status, s.jobs, s.children, s.timers)
	case s.end != nil && s.end.Status == jobhost.WorkflowCompleted:
		if _, err := s.end.Output.Compose(s.Read); err != nil {
			s.t.Fatalf("output: %v", err)
		}
	case len(s.record) > 200+16*len(s.graph.Steps):
		s.t.Fatalf("a record of %d bytes", len(s.record))
	}
	for i := range s.graph.Steps {
		waits := func(status jobhost.StepStatus) bool { // or would; that isn't always told
			return status == jobhost.StepPending || status == jobhost.StepCancelled
		}
		if row := s.rows[i]; row != nil && row.Status != look.Step(i) && !(waits(row.Status) && waits(look.Step(i))) {
			s.t.Fatalf("step %d is %s, and %s was told", i, look.Step(i), row.Status)
		}
	}
}

func (s *site) waits(look *machine.Look) bool {
	for i, node := range s.graph.Steps {
		if node.Kind == machine.Signal && look.Step(i) == jobhost.StepRunning {
			return true
		}
	}
	return false
}

func (s *site) statuses() string {
	look, err := s.machine.Look(s.record)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	var list []string
	for i, node := range s.graph.Steps {
		list = append(list, node.Name+":"+string(look.Step(i)))
	}
	return strings.Join(list, " ")
}

func (s *site) openRuns() []machine.Run {
	less := func(a, b machine.Run) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	return append(slices.SortedFunc(maps.Keys(s.jobs), less), slices.SortedFunc(maps.Keys(s.children), less)...)
}
