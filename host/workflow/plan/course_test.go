package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/expr"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// work is a step with a worker.
func work(name string, needs ...string) jobhost.Step {
	return jobhost.Step{Name: name, Worker: "parser", Needs: needs}
}

func with(s jobhost.Step, change func(s *jobhost.Step)) jobhost.Step {
	change(&s)
	return s
}

func TestInputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, input, output, expression, want string }{
		{"selected", `{"n":1}`, `{"a":[1,2]}`, "steps.a.output.a[1] + input.n", "3"},
		{"text", `{}`, `{"a":"x"}`, "steps.a.output.a + '!'", "x!"},
		{"input as it is", `{"n": 1}`, `0`, "input", `{"n": 1}`},
		{"output as it is", `{}`, `{ "z":1 }`, "steps.a.output", `{ "z":1 }`},
		{"JSON text as it is", `{}`, `"text"`, "steps.a.output", "text"},
		{"no JSON", `{}`, "\x00\xff", "steps.a.output", "\x00\xff"},
		{"nothing at all", `{}`, "", "steps.a.output", ""},
		{"nothing is text", `{}`, "", "steps.a.output == ''", "true"},
		{"status", `{}`, "1", "steps.a.status", "completed"},
		{"no failure", `{}`, "1", "steps.a.error", "null"},
		{"workflow", `{}`, "1", "[workflow.id, workflow.name, workflow.labels.tenant, string(workflow.started)]", `["wf-1","play","acme","2024-02-29T12:00:00Z"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := with(work("b", "a"), func(s *jobhost.Step) { s.Input = tt.expression })
			s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{b, work("a")}}, tt.input).start()
			s.succeed("a", tt.output)
			if got := s.payload("b"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		when, output string
		want         jobhost.StepStatus
	}{
		{"steps.a.output.ok", `{"ok":true}`, jobhost.StepRunning},
		{"steps.a.output.ok", `{"ok":false}`, jobhost.StepSkipped},
		{"steps.a.output.ok", `{}`, jobhost.StepFailed},
		{"steps.a.output.ok", `{"ok":3}`, jobhost.StepFailed},
		{"input.n > 1", ``, jobhost.StepRunning},
	} {
		t.Run(tt.when+tt.output, func(t *testing.T) {
			t.Parallel()
			b := with(work("b", "a"), func(s *jobhost.Step) { s.When, s.OnError = tt.when, jobhost.ContinueWorkflow })
			s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{work("a"), b}}, `{"n":2}`).start()
			s.succeed("a", tt.output)
			if got := s.status("b"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTerminateSeesItsOwnOutput(t *testing.T) {
	t.Parallel()
	for output, ends := range map[string]bool{`{"done":true}`: true, `{"done":false}`: false} {
		a := with(work("a"), func(s *jobhost.Step) { s.Terminate = "output.done" })
		s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{a, work("b", "a")}}, "{}").start()
		s.succeed("a", output)
		if (s.end != nil) != ends || ends && s.compose(&s.end.Output) != output {
			t.Errorf("%s: ended with %+v", output, s.end)
		}
	}
}

func TestOutputOfTheWorkflowIsJSON(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"steps.a.output":                 `"12"`,
		"{'a': steps.a.output, 'n': 1}":  `{"a":"12","n":1}`,
		"[steps.b.output, input]":        `[null,{}]`,
		"steps.b.status":                 `"skipped"`,
		"steps.c.error.code + '/' + 'x'": `"boom/x"`,
		"steps.b.output":                 `null`,
	} {
		b := with(work("b"), func(s *jobhost.Step) { s.When = "false" })
		c := with(work("c"), func(s *jobhost.Step) { s.OnError = jobhost.ContinueWorkflow })
		s := onStage(t, jobhost.Workflow{Output: expression, Steps: []jobhost.Step{work("a"), b, c}}, "{}").start()
		s.fail("c", "no")
		s.succeed("a", `"12"`)
		if s.end == nil || s.compose(&s.end.Output) != want {
			t.Errorf("%s: got %+v, want %s", expression, s.end, want)
		}
	}
}

func TestFailuresAndSkippedStepsAreSeen(t *testing.T) {
	t.Parallel()
	a := with(work("a"), func(s *jobhost.Step) { s.OnError = jobhost.ContinueWorkflow })
	b := with(work("b"), func(s *jobhost.Step) { s.When = "false" })
	c := with(work("c", "a", "b"), func(s *jobhost.Step) {
		s.WhenSkipped = jobhost.RunAnyway
		s.Input = "[steps.a.status, steps.a.error.message, steps.a.error.category, steps.a.output, steps.b.status, steps.b.output, steps.b.error]"
	})
	s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{a, b, c}}, "{}").start()
	s.fail("a", "no route")
	if got, want := s.payload("c"), `["failed","no route","network",null,"skipped",null,null]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFallbacks(t *testing.T) {
	t.Parallel()
	a := with(work("a", "x"), func(s *jobhost.Step) { s.Input, s.Fallback = "steps.x.output.n", "f" })
	f := with(work("f"), func(s *jobhost.Step) { s.Fallback, s.When = "g", "steps.a.status == 'failed'" })
	g := with(work("g"), func(s *jobhost.Step) {
		s.Input = "[steps.a.status, steps.a.error.message, steps.f.status, steps.f.error.message, steps.x.output.n]"
	})
	after := with(work("after", "a"), func(s *jobhost.Step) { s.Input = "[steps.a.status, steps.a.output, steps.a.error]" })
	s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{g, f, after, a, work("x")}}, "{}").start()
	s.succeed("x", `{"n":7}`)
	s.fail("a", "first")
	if got := s.payload("f"); got != "7" {
		t.Errorf("the fallback has got %s, and not what the step has", got)
	}
	s.fail("f", "second")
	if got, want := s.payload("g"), `["failed","first","failed","second",7]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.succeed("g", `"saved"`)
	if got, want := s.payload("after"), `["completed","saved",null]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFallbackHasWhatTheStepHasByDefault(t *testing.T) {
	t.Parallel()
	a := with(work("a", "x", "y"), func(s *jobhost.Step) { s.Fallback = "f" })
	s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{work("x"), work("y"), a, work("f")}}, `"in"`).start()
	s.succeed("x", "1")
	s.succeed("y", "text")
	s.fail("a", "no")
	if got, want := s.payload("f"), `{"x":1,"y":"text"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, fanOut, input, want string }{
		{"elements", "steps.a.output.list", "", `1 x {"k":null}`},
		{"with input", "steps.a.output.list", "{'i': index, 'v': item, 'n': input.n}", `{"i":0,"n":2,"v":1} {"i":1,"n":2,"v":"x"} {"i":2,"n":2,"v":{"k":null}}`},
		{"item", "steps.a.output.list", "item", `1 x {"k":null}`},
		{"made", "['a', 'b'].map(x, x + '!')", "", "a! b!"},
		{"empty", "[]", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := with(work("b", "a"), func(s *jobhost.Step) { s.FanOut, s.Input, s.Fallback = tt.fanOut, tt.input, "f" })
			s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{work("a"), b, work("f")}}, `{"n":2}`).start()
			s.succeed("a", `{"list":[1,"x",{"k":null}]}`)
			items := func(step string) string {
				texts := []string{}
				for _, item := range s.submits[step].Items {
					texts = append(texts, string(item))
				}
				return strings.Join(texts, " ")
			}
			if got := items("b"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if tt.want == "" {
				return
			}
			s.fail("b", "no")
			if got := items("f"); got != tt.want {
				t.Errorf("the fallback got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFanOutIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fanOut, input, want string }{
		"bytes": {"input.list", "input.text", "longer than"},
		"work":  {"input.list", "input.list.all(x, !input.text.contains('y'))", "operations together"},
		"count": {"input.list.map(x, input.list).map(l, l[0])", "", ""},
		"type":  {"input.text", "", "not a list"},
		"one":   {"input.list", "item < 5 ? 1 : input.none", "element 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := with(work("a"), func(s *jobhost.Step) { s.FanOut, s.Input = tt.fanOut, tt.input })
			list := strings.TrimSuffix(strings.Repeat("0,1,2,3,4,5,", 60), ",")
			s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{a}}, fmt.Sprintf(`{"list":[%s],"text":%q}`, list, strings.Repeat("x", 50_000))).start()
			if tt.want == "" {
				if n := len(s.submits["a"].Items); n != 360 {
					t.Errorf("%d items", n)
				}
				return
			}
			if f := s.failures[0]; f == nil || f.Code != jobhost.FailExpression || !strings.Contains(f.Message, tt.want) {
				t.Errorf("got %+v, want %s", f, tt.want)
			}
		})
	}
}

// TestLargeDataArePassedOnUnread is of data that nothing looks at.
func TestLargeDataArePassedOnUnread(t *testing.T) {
	t.Parallel()
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	b := with(work("b", "a"), func(s *jobhost.Step) { s.Input = "steps.a.output" })
	c := with(work("c", "a"), func(s *jobhost.Step) { s.Input = "input" })
	s := onStage(t, jobhost.Workflow{Output: "steps.a.output", Steps: []jobhost.Step{work("a"), b, c}}, large).start()
	s.succeed("a", large)
	if s.payload("b") != large || s.payload("c") != large {
		t.Error("other data have come")
	}
	s.succeed("b", "1")
	s.succeed("c", "1")
	if s.end == nil || s.compose(&s.end.Output) != large {
		t.Error("other data are the output")
	}
	if len(s.read) > 0 {
		t.Errorf("%v were read", s.read)
	}
}

func TestUnreadableDataFailTheStep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expression, output string
		broken             error
		want               string
	}{
		"large":       {"steps.a.output.x", `"` + strings.Repeat("x", 1<<20) + `"`, nil, "is longer than the 65536 bytes"},
		"gone":        {"steps.a.output.x", "1", fmt.Errorf("result: %w", machine.ErrUnreadable), "unreadable"},
		"gone, as is": {"steps.a.output", "1", fmt.Errorf("result: %w", machine.ErrUnreadable), "unreadable"},
		"no JSON":     {"steps.a.output.x", "text", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := with(work("b", "a"), func(s *jobhost.Step) { s.Input = tt.expression })
			s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{work("a"), b}}, "{}").start()
			_, run := s.run("a")
			s.broken[machine.Source{Kind: machine.Result, Run: run}] = tt.broken
			s.succeed("a", tt.output)
			if f := s.failures[1]; f == nil || f.Code != jobhost.FailExpression || !strings.Contains(f.Message, tt.want) {
				t.Errorf("got %+v, want %s", f, tt.want)
			}
		})
	}
}

func TestFaultsOfTheStoreAreNotTheSteps(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk on fire")
	for _, expression := range []string{"steps.a.output.x", "steps.a.output", "steps.a.status"} {
		b := with(work("b", "a"), func(s *jobhost.Step) { s.Input = expression })
		s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{work("a"), b}}, "{}").start()
		_, run := s.run("a")
		s.broken[machine.Source{Kind: machine.Result, Run: run}] = disk
		if err := s.advance(machine.Event{What: machine.JobSucceeded, Run: run}); !errors.Is(err, disk) {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

func TestPanicsAreErrors(t *testing.T) {
	t.Parallel()
	s := onStage(t, jobhost.Workflow{Steps: []jobhost.Step{with(work("a"), func(s *jobhost.Step) { s.Input = "input.x" })}}, "{}")
	s.plan.Steps[0].Input = new(expr.Program) // there is nothing to run in it
	s.start()
	if f := s.failures[0]; f == nil || !strings.Contains(f.Message, "internal") {
		t.Errorf("got %+v", f)
	}
}

// TestEveryPlanHasACourse draws definitions, most of them with faults.
func TestEveryPlanHasACourse(t *testing.T) {
	t.Parallel()
	var sound, all int
	rapid.Check(t, func(t *rapid.T) {
		w := anything(t)
		p, err := Compile(w, Env{})
		all++
		if err != nil {
			return
		}
		sound++
		c, err := p.Machine()
		if err != nil {
			t.Fatalf("%v\n%+v", err, w)
		}
		s := stage{t: nil, plan: p, machine: c, data: map[machine.Source][]byte{{Kind: machine.Input}: []byte("{}")}}
		if _, err := c.Advance("wf-1", nil, &machine.Event{What: machine.Started}, &s); err != nil {
			t.Fatalf("%v\n%+v", err, w)
		}
	})
	t.Logf("%d of %d make sense", sound, all)
	if sound < all/10 {
		t.Errorf("%d of %d definitions make sense", sound, all)
	}
}

// anything draws a workflow that may make sense.
func anything(t *rapid.T) jobhost.Workflow {
	n := rapid.IntRange(1, 6).Draw(t, "steps")
	steps := make([]jobhost.Step, n)
	pick := func(label string, list ...string) string { return rapid.SampledFrom(list).Draw(t, label) }
	for i := range steps {
		s := &steps[i]
		s.Name = step(i)
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			s.Signal = "go"
		case 1:
			s.Sleep = 1
		case 2:
			s.Workflow = "other"
		default:
			s.Worker = "parser"
			s.FanOut = pick("fan-out", "", "", "", "[1, 2]", "input")
			s.Tasks = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "tasks")
		}
		for range rapid.IntRange(0, 2).Draw(t, "needs") {
			if j := rapid.IntRange(-1, n-1).Draw(t, "need"); j >= 0 && (j < i || rapid.IntRange(0, 9).Draw(t, "back") == 0) {
				s.Needs = append(s.Needs, step(j))
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "fallback") == 0 {
			s.Fallback = pick("whose", "worker", step(rapid.IntRange(0, n-1).Draw(t, "which")))
		}
		s.When = pick("when", "", "", "true", "input == 1")
		s.Terminate = pick("terminate", "", "", "", "", "output == 1")
		s.OnError = jobhost.OnError(pick("on-error", "", "", "continue"))
	}
	return jobhost.Workflow{Name: "drawn", Steps: steps, MaxParallel: rapid.IntRange(0, 2).Draw(t, "parallel")}
}
