package machine_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// define reads a definition: a step for each line, NAME<NEEDS|OPTION|…, and options of
// the workflow on one that begins with a |.
func define(t fataler, text string) *site {
	t.Helper()
	eval := &answers{when: map[int]string{}, terminate: map[int]string{}, fanOut: map[int]int{}, input: map[int]string{}}
	var steps []machine.Node
	var whole []string
	needs, fallbacks := map[string]string{}, map[string]string{}
	outputs := machine.None
	for line := range strings.Lines(text) {
		options := strings.Split(strings.TrimSpace(line), "|")
		name, before, _ := strings.Cut(options[0], "<")
		if name == "" {
			whole = append(whole, options[1:]...)
			continue
		}
		needs[name] = before
		node := machine.Node{Name: name}
		for _, option := range options[1:] {
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "fallback":
				fallbacks[name] = value
			case "output":
				outputs = len(steps)
			default:
				configure(t, &node, eval, len(steps), key, value)
			}
		}
		steps = append(steps, node)
	}
	g := link(steps, needs, fallbacks)
	g.Output = outputs
	for _, option := range whole {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "max":
			g.MaxParallel = number(value)
		case "timeout":
			g.Timeout = span(value)
		case "output":
			g.HasOutput, eval.output = true, value
		}
	}
	return newSite(t, g, eval)
}

func configure(t fataler, node *machine.Node, eval *answers, i int, key, value string) {
	t.Helper()
	switch key {
	case "continue":
		node.OnError = jobhost.ContinueWorkflow
	case "run":
		node.WhenSkipped = jobhost.RunAnyway
	case "always":
		node.WhenSkipped = jobhost.RunWhatever
	case "signal":
		node.Kind, node.Signal = machine.Signal, value
	case "sleep":
		node.Kind, node.Sleep = machine.Sleep, span(value)
	case "child":
		node.Kind = machine.Child
	case "limit":
		node.Limit = span(value)
	case "when":
		node.HasWhen, eval.when[i] = true, value
	case "terminate":
		node.HasTerminate, eval.terminate[i] = true, value
	case "input":
		node.HasInput, eval.input[i] = true, value
	case "fanout":
		node.HasFanOut, eval.fanOut[i] = true, number(value)
	case "tasks":
		node.Tasks = number(value)
	case "":
	default:
		t.Fatalf("option %s", key)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

var happenings = map[string]machine.Happening{
	"start": machine.Started, "ok": machine.JobSucceeded, "dead": machine.JobDead, "gone": machine.JobCancelled,
	"retrying": machine.JobRetrying, "revive": machine.JobRevived, "resumed": machine.ChildResumed,
	"signal": machine.Signalled, "due": machine.TimerDue, "cancel": machine.Cancelled, "retry": machine.Retry,
	"completed": machine.ChildEnded, "failed": machine.ChildEnded, "cancelled": machine.ChildEnded,
}

// event reads an event: a verb and a run, as a or a.2 or a.f1.
func (s *site) event(text string) machine.Event {
	s.t.Helper()
	words := append(strings.Fields(text), "", "", "")
	verb, name := words[0], words[1]
	e := machine.Event{What: happenings[verb], Step: machine.None}
	switch verb {
	case "cancel":
		e.Reason = "no more"
	case "signal":
		e.Signal, e.ID, e.Payload = name, words[2], []byte(`"yes"`)
	case "retry":
		if name != "" {
			e.Step = s.index(name)
		}
	case "due":
		e.Timer = machine.Timer{Run: machine.Run{Step: machine.None, Number: 1}, Purpose: machine.Limit}
		if name != "" {
			e.Timer.Run = s.run(name)
		}
		if words[2] == "wake" {
			e.Timer.Purpose = machine.Wake
		}
	case "completed", "failed", "cancelled":
		e.Status = jobhost.WorkflowStatus(verb)
		e.Run = s.run(name)
	case "start":
	default:
		e.Run = s.run(name)
	}
	if verb == "dead" || verb == "failed" || verb == "retrying" {
		e.Failure = &jobhost.Failure{Code: "boom", Message: name}
	}
	return e
}

func (s *site) index(name string) int {
	return slices.IndexFunc(s.graph.Steps, func(n machine.Node) bool { return n.Name == name })
}

func (s *site) run(text string) machine.Run {
	s.t.Helper()
	name, number, found := strings.Cut(text, ".")
	i := s.index(name)
	if !found {
		look, err := s.machine.Look(s.record)
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		return look.Run(i)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(number, "f"), 10, 32)
	if err != nil {
		s.t.Fatalf("run %s", text)
	}
	return machine.Run{Step: i, Number: uint32(n), Fallback: strings.HasPrefix(number, "f")}
}

// play goes through a script. Each line is an event, or
//
//	= STATUSES   all steps are there now
//	> ENTRY      the last event has led to it; ~ it has not
//	! EVENT      which changes nothing
//	- CODE EVENT which is refused
func (s *site) play(t *testing.T, script string) {
	t.Helper()
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "=":
			if got := s.statuses(); got != rest {
				t.Fatalf("%s\ngot  %s\nlog  %q", line, got, s.log)
			}
		case ">", "~":
			if slices.Contains(s.log, rest) != (verb == ">") {
				t.Fatalf("%s\nlog %q", line, s.log)
			}
		case "!":
			if e := s.event(rest); s.advance(e) {
				t.Fatalf("%s changed something: %q", line, s.log)
			}
		case "-":
			code, rest, _ := strings.Cut(rest, " ")
			out, _ := s.try(s.event(rest))
			if out.Refused == nil || out.Refused.Code != jobhost.Code(code) {
				t.Fatalf("%s: refused %v", line, out.Refused)
			}
		case "output":
			s.playOutput(t, rest)
		case "failure":
			if s.end == nil || s.end.Failure == nil || s.end.Failure.Code+" "+s.end.Failure.Message != rest {
				t.Fatalf("%s: %+v", line, s.end)
			}
		default:
			s.log = nil
			e := s.event(line)
			if e.What == machine.JobRevived { // the queue has opened it again
				s.jobs[e.Run] = "revived"
			}
			if e.What == machine.ChildResumed {
				s.children[e.Run] = "resumed"
			}
			if e.What == machine.TimerDue {
				if _, found := s.timers[e.Timer]; !found {
					t.Fatalf("%s: there is no such timer: %v", line, s.timers)
				}
			}
			if !s.advance(e) {
				t.Fatalf("%s changes nothing", line)
			}
		}
	}
}

func (s *site) playOutput(t *testing.T, want string) {
	t.Helper()
	if s.end == nil {
		t.Fatalf("it has not ended: %s", s.statuses())
	}
	got, err := s.end.Output.Compose(s.Read)
	if err != nil || string(got) != want {
		t.Fatalf("output\ngot  %s, %v\nwant %s", got, err, want)
	}
}
