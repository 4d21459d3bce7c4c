package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

func TestStoreThatCantRead(t *testing.T) {
	t.Parallel()
	s := define(t, "|output=ok\na")
	s.play(t, "start")
	run := s.run("a")
	e := &machine.Event{What: machine.JobSucceeded, Run: run, At: s.now}
	s.broken = errors.New("disk")
	if out, err := s.machine.Advance(s.id, s.record, e, s); !errors.Is(err, s.broken) || out.Record != nil {
		t.Fatalf("a store with a fault: %+v, %v", out, err)
	}
	e.Output = []byte("1") // is at hand
	if out, err := s.machine.Advance(s.id, s.record, e, s); err != nil || string(out.End.Output.Data) != `{"a":1}` {
		t.Fatalf("with the output: %+v, %v", out, err)
	}
	e.Output, s.broken = nil, fmt.Errorf("result of 10 MB: %w", machine.ErrUnreadable)
	out, err := s.machine.Advance(s.id, s.record, e, s)
	if err != nil || out.End.Failure == nil || out.End.Failure.Code != jobhost.FailExpression || !strings.Contains(out.End.Failure.Message, "10 MB") {
		t.Fatalf("an output that is too large: %+v, %v", out.End, err)
	}
}

// large is a store with something that it doesn't read.
type large struct {
	*site
	size int64
	err  error
}

func (l large) Read(machine.Source) ([]byte, error) {
	return nil, fmt.Errorf("output of 10 MB: %w", machine.ErrTooLarge)
}

type sized struct{ large }

func (s sized) Size(machine.Source) (int64, error) { return s.size, s.err }
func (s sized) Labels() map[string]string          { return map[string]string{"a": "b"} }

// fitting notes whether the input fits into 100 bytes.
type fitting struct {
	*answers
	fits   bool
	err    error
	labels map[string]string
}

func (f *fitting) When(_ int, v *machine.View) (bool, error) {
	f.labels = v.Labels()
	f.fits, f.err = v.Fits(machine.Source{Kind: machine.Input}, 100)
	return true, nil
}

func TestSizesAndLabelsAsTheReaderKnowsThem(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk")
	s := define(t, "a|when=true")
	for name, tt := range map[string]struct {
		reader machine.Reader
		fits   bool
		labels int
		err    error
	}{
		"read":      {s, true, 0, nil},
		"not read":  {large{site: s}, false, 0, nil},
		"large":     {sized{large{s, 101, nil}}, false, 1, nil},
		"small":     {sized{large{s, 100, nil}}, true, 1, nil},
		"disk":      {sized{large{s, 0, disk}}, false, 1, disk},
		"gone":      {sized{large{s, 0, machine.ErrUnreadable}}, false, 1, nil},
		"too large": {sized{large{s, 1 << 40, nil}}, false, 1, nil},
	} {
		eval := &fitting{answers: s.eval}
		c, err := machine.New(s.graph, eval)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Advance("wf-y", nil, &machine.Event{What: machine.Started, At: s.now}, tt.reader)
		if !errors.Is(err, tt.err) || eval.err == nil && eval.fits != tt.fits || len(eval.labels) != tt.labels {
			t.Errorf("%s: fits: %v, %v; labels %v; %v", name, eval.fits, eval.err, eval.labels, err)
		}
		if (name == "gone" || name == "disk") != (eval.err != nil) {
			t.Errorf("%s: %v", name, eval.err)
		}
	}
}

func TestViewOfWorkflow(t *testing.T) {
	t.Parallel()
	s := define(t, "a|when=true")
	e := &machine.Event{What: machine.Started, At: s.now.Add(1234567)}
	eval := &watching{answers: s.eval}
	c, err := machine.New(s.graph, eval)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Advance("wf-y", nil, e, s); err != nil {
		t.Fatal(err)
	}
	if want := `wf-y 2001-09-09T01:46:40.001Z {"n":1}`; eval.saw != want {
		t.Fatalf("it saw %s, not %s", eval.saw, want)
	}
}

type watching struct {
	*answers
	saw string
}

func (w *watching) When(_ int, v *machine.View) (bool, error) {
	input, err := v.Input()
	w.saw = fmt.Sprintf("%s %s %s", v.ID(), v.Started().Format(time.RFC3339Nano), input)
	return true, err
}

func TestBoundsOfSignals(t *testing.T) {
	t.Parallel()
	s := define(t, "a\nb<a|signal=x")
	s.play(t, "start\n"+strings.Repeat("signal x\n", machine.MaxSignals)+"- exhausted signal x")
	large := machine.Event{What: machine.Signalled, Signal: "x", Payload: make([]byte, jobhost.MaxStepData+1)}
	if out, _ := s.try(large); out.Refused == nil || out.Refused.Code != jobhost.CodeTooLarge {
		t.Fatalf("a large payload: %v", out.Refused)
	}
	if len(s.record) > 1024 {
		t.Fatalf("a record of %d bytes", len(s.record))
	}
	for i := range 3 * machine.MaxSignals { // ids are remembered up to a bound
		s := define(t, "a|signal=x\nb<a|signal=x")
		s.play(t, fmt.Sprintf("start\nsignal x %d\n! signal x %d", i, i))
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 200)
	g := link([]machine.Node{{Name: "a"}, {Name: "b.2"}, {Name: long}, {Name: "--x"}, {Name: "ö"}, {Name: long + "2"}}, nil, nil)
	c, err := machine.New(g, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, workflow := range []string{"wf-a", "wf-" + strings.Repeat("b", machine.MaxWorkflowID-3)} {
		for i := range g.Steps {
			for _, fallback := range []bool{false, true} {
				for _, n := range []uint32{1, 2, 1<<32 - 1} {
					run := machine.Run{Step: i, Number: n, Fallback: fallback}
					wake, limit := machine.Timer{Run: run, Purpose: machine.Wake}, machine.Timer{Run: run, Purpose: machine.Limit}
					for id, of := range map[string]machine.Timer{
						c.ID(workflow, run): {Run: run}, c.TimerID(workflow, wake): wake, c.TimerID(workflow, limit): limit,
					} {
						if err := jobhost.CheckID(id); err != nil || seen[id] {
							t.Errorf("id %s: %v, seen %v", id, err, seen[id])
						}
						seen[id] = true
						if got, ok := c.Read(workflow, id); !ok || got != of {
							t.Errorf("id %s is read as %+v, %v; want %+v", id, got, ok, of)
						}
					}
				}
			}
		}
	}
	whole := machine.Timer{Run: machine.Run{Step: machine.None, Number: 1}, Purpose: machine.Limit}
	if got, ok := c.Read("wf-a", c.TimerID("wf-a", whole)); !ok || got != whole {
		t.Errorf("the timer of the workflow is read as %+v, %v", got, ok)
	}
	for _, id := range []string{"", "wf-a", "wf-a.", "wf-a.c.1", "wf-a.a.01", "wf-a.a.x", "wf-a.a.1.wake.wake", "wf-b.a.1"} {
		if got, ok := c.Read("wf-a", id); ok {
			t.Errorf("%q is read as %+v", id, got)
		}
	}
	if id := c.ID("wf-a", machine.Run{Step: 0, Number: 2}); id != "wf-a.a.2" {
		t.Errorf("id %s", id)
	}
	if _, err := c.Advance(strings.Repeat("w", machine.MaxWorkflowID+1), nil, &machine.Event{What: machine.Started}, nobody{}); err == nil {
		t.Error("the id of a workflow may be too long")
	}
}

// TestWorkflowsInWorkflows goes down until names no longer fit into ids.
func TestWorkflowsInWorkflows(t *testing.T) {
	t.Parallel()
	g := link([]machine.Node{{Name: strings.Repeat("step", 8), Kind: machine.Child}}, nil, nil)
	c, err := machine.New(g, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	id, seen := "wf-0198b6a4-37a5-7c1e-9a3e-5d0c7e6f1a2b", map[string]bool{}
	for range 32 {
		out, err := c.Advance(id, nil, &machine.Event{What: machine.Started, At: time.Unix(1, 0)}, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		if id = out.Begin[0].ID; seen[id] || !strings.HasPrefix(id, jobhost.WorkflowIDPrefix) || jobhost.CheckID(id) != nil {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	read := func(s machine.Source) ([]byte, error) {
		return [][]byte{[]byte(`{"n":1}`), []byte("it's text"), {0xff}}[s.Slot], nil
	}
	var p machine.Payload
	for i, name := range []string{"json", "text", "b\"ytes"} {
		p.From = append(p.From, machine.Part{Name: name, Source: machine.Source{Kind: machine.Kept, Slot: i}})
	}
	p.From = append(p.From, machine.Part{Name: "none"}, machine.Part{Name: "empty", Source: machine.Source{Kind: machine.Empty}})
	got, err := p.Compose(read)
	if want := `{"json":{"n":1},"text":"it's text","b\"ytes":"/w==","none":null,"empty":[]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	p.From = []machine.Part{{Source: machine.Source{Kind: machine.Kept, Slot: 2}}}
	if got, err := p.Compose(read); err != nil || string(got) != "\xff" {
		t.Errorf("as it is: %q, %v", got, err)
	}
}

func TestGraphsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		spoil func(g *machine.Graph)
	}{
		{"no steps", func(g *machine.Graph) { g.Steps = nil }},
		{"too many", func(g *machine.Graph) { g.Steps = make([]machine.Node, jobhost.MaxSteps+1) }},
		{"an edge to nowhere", func(g *machine.Graph) { g.Steps[0].Next = []int32{9} }},
		{"a step that needs itself", func(g *machine.Graph) { g.Steps[0].Needs = []int32{0} }},
		{"no first", func(g *machine.Graph) { g.Steps, g.Steps[0].Needs = g.Steps[:2], []int32{1} }},
		{"output of nowhere", func(g *machine.Graph) { g.Output = 7 }},
		{"a fallback that doesn't know", func(g *machine.Graph) { g.Steps[0].Fallback = 1 }},
		{"a fallback of nobody", func(g *machine.Graph) { g.Steps[1].FallbackOf = 0 }},
		{"a fallback nowhere", func(g *machine.Graph) { g.Steps[0].Fallback = -2 }},
		{"two fallbacks", func(g *machine.Graph) {
			g.Steps[0].Fallback, g.Steps[2].FallbackOf, g.Steps[0].FallbackWorker = 2, 0, true
		}},
		{"fallbacks in a circle", func(g *machine.Graph) {
			g.Steps[2].Fallback, g.Steps[2].FallbackOf, g.Steps[3].Fallback, g.Steps[3].FallbackOf = 3, 3, 2, 2
		}},
		{"a fallback that others need", func(g *machine.Graph) { g.Steps[2].Fallback, g.Steps[0].FallbackOf = 0, 2 }},
		{"a wait of several tasks", func(g *machine.Graph) { g.Steps[1].Kind, g.Steps[1].Tasks = machine.Sleep, 2 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := link([]machine.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, map[string]string{"b": "a"}, nil)
			tc.spoil(g)
			if _, err := machine.New(g, nobody{}); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

func TestRecordOfAnotherDefinition(t *testing.T) {
	t.Parallel()
	s := define(t, "a\nb<a")
	s.play(t, "start")
	for _, change := range []func(*machine.Graph){
		func(g *machine.Graph) { g.Digest++ },
		func(g *machine.Graph) { g.Steps = g.Steps[:1]; g.Steps[0].Next = nil },
	} {
		other := *s.graph
		change(&other)
		c, err := machine.New(&other, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Advance(s.id, s.record, s.new(machine.Cancelled), s); !errors.Is(err, machine.ErrRecord) {
			t.Errorf("another definition: %v", err)
		}
	}
	if _, err := s.machine.Advance(s.id, nil, s.new(machine.Cancelled), s); !errors.Is(err, machine.ErrRecord) {
		t.Errorf("no record: %v", err)
	}
}

func (s *site) new(what machine.Happening) *machine.Event {
	return &machine.Event{What: what, At: s.now}
}

// TestManySteps goes through workflows of thousands of steps, in the chaos run of as many
// as there may be: each event looks at all of them.
func TestManySteps(t *testing.T) {
	t.Parallel()
	steps := 3_000
	if chaos() {
		steps = jobhost.MaxSteps
	}
	for _, tc := range []struct {
		name      string
		before    func(int) []int32
		lastFirst bool
	}{{"chain", chain, false}, {"join", join(steps - 2), false}, {"join, last first", join(steps - 2), true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			events, size := drive(t, network(t, steps, tc.before), tc.lastFirst)
			if events != steps+1 || size > 64 {
				t.Errorf("%d events, records up to %d bytes", events, size)
			}
		})
	}
}

// TestLongSkip skips 10,000 steps with one event, and a chain of fallbacks.
func TestLongSkip(t *testing.T) {
	t.Parallel()
	var text, falls strings.Builder
	text.WriteString("s0|when=false\n")
	for i := 1; i < 10_000; i++ {
		fmt.Fprintf(&text, "s%d<s%d\n", i, i-1)
	}
	for i := range 9_999 {
		fmt.Fprintf(&falls, "s%d|fallback=s%d|input=error\n", i, i+1)
	}
	falls.WriteString("s9999|input=error\n")
	for _, definition := range []string{text.String(), falls.String()} {
		s := define(t, definition)
		s.play(t, "start")
		if s.end == nil {
			t.Error("it goes on")
		}
	}
}

func TestGraphOf(t *testing.T) {
	t.Parallel()
	w := jobhost.Workflow{
		Name: "w", Output: "1", MaxParallel: 3, Timeout: jobhost.Duration(time.Hour),
		Steps: []jobhost.Step{
			{Name: "a", Worker: "x", Fallback: "f", When: "true", Tasks: 2, Deadline: 5, OnError: jobhost.ContinueWorkflow},
			{Name: "b", Signal: "s", Needs: []string{"a"}, Timeout: 7, Deadline: 9, Fallback: "worker", WhenSkipped: jobhost.RunAnyway, Output: true},
			{Name: "f", Worker: "x", FanOut: "[]", Input: "item", Terminate: "true"},
			{Name: "c", Workflow: "v", Needs: []string{"a", "b"}},
			{Name: "d", Sleep: 4},
		},
	}
	g, err := machine.GraphOf(&w)
	if err != nil {
		t.Fatal(err)
	}
	digest := g.Digest
	g.Digest = 0
	want := &machine.Graph{HasOutput: true, Output: 1, MaxParallel: 3, Timeout: time.Hour, Steps: []machine.Node{
		{Name: "a", Next: []int32{1, 3}, Fallback: 2, FallbackOf: -1, HasWhen: true, Tasks: 2, Limit: 5, OnError: jobhost.ContinueWorkflow},
		{
			Name: "b", Kind: machine.Signal, Signal: "s", Needs: []int32{0}, Next: []int32{3}, Fallback: -1, FallbackOf: -1,
			FallbackWorker: true, WhenSkipped: jobhost.RunAnyway, Limit: 7,
		},
		{Name: "f", Fallback: -1, FallbackOf: 0, HasFanOut: true, HasInput: true, HasTerminate: true},
		{Name: "c", Kind: machine.Child, Needs: []int32{0, 1}, Fallback: -1, FallbackOf: -1},
		{Name: "d", Kind: machine.Sleep, Sleep: 4, Fallback: -1, FallbackOf: -1},
	}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got  %+v\nwant %+v", g, want)
	}
	w.Steps[0].Worker = "y"
	if g, err := machine.GraphOf(&w); err != nil || g.Digest == digest {
		t.Errorf("another definition has the same digest, %v", err)
	}
	w.Steps[3].Needs = []string{"z"}
	if _, err := machine.GraphOf(&w); err == nil {
		t.Error("a step needs none")
	}
	w.Steps[3] = w.Steps[0]
	if _, err := machine.GraphOf(&w); err == nil {
		t.Error("two steps have one name")
	}
}
