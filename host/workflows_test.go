package host_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// startWorkflow starts a workflow and returns its id.
func startWorkflow(t testing.TB, h *hosttest.Host, s jobhost.WorkflowStart) string {
	t.Helper()
	r, err := h.StartWorkflow(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func workflowEnded(t testing.TB, h *hosttest.Host, id string) jobhost.WorkflowRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := h.WaitWorkflow(ctx, id)
	if err != nil {
		text, _ := json.MarshalIndent(run, "", " ")
		t.Fatalf("%v\n%s", err, text)
	}
	return run
}

func statuses(run *jobhost.WorkflowRun) string {
	text := string(run.Status)
	for _, s := range run.Steps {
		text += " " + s.Name + "=" + string(s.Status)
	}
	return text
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Workflows.Definitions = []jobhost.Workflow{
		{Name: "child", Steps: []jobhost.Step{{Name: "only", Worker: "test", Input: `{"from": input.n}`}}},
	}
	h, _ := run(t, cfg)
	echo := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: "test", Needs: needs}
	}
	step := func(s jobhost.Step, change func(*jobhost.Step)) jobhost.Step {
		change(&s)
		return s
	}
	for _, test := range []struct {
		name, input string
		steps       []jobhost.Step
		want        string
		output      string
	}{
		{"chain", `{"n":1}`, []jobhost.Step{echo("a"), echo("b", "a"), echo("c", "b")}, "completed a=completed b=completed c=completed", `{"n":1}`},
		{"join", `1`, []jobhost.Step{echo("a"), echo("b"), echo("c", "a", "b")}, "completed a=completed b=completed c=completed", `{"a":1,"b":1}`},
		{"fan-out", `[3,1,2]`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.FanOut, s.MaxParallel = "input", 2 }), echo("b", "a"),
		}, "completed a=completed b=completed", `[3,1,2]`},
		{"none to fan out", `[]`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.FanOut = "input" }), echo("b", "a"),
		}, "completed a=completed b=completed", `[]`},
		{"condition", `{"n":1}`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.When = "input.n > 1" }), echo("b", "a"), echo("c"),
		}, "completed a=skipped b=skipped c=completed", `{"b":null,"c":{"n":1}}`},
		{"fails", `"x"`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Entry = "fail_permanent" }), echo("b", "a"), echo("c"),
		}, "failed a=failed b=cancelled", ``},
		{"continues", `"x"`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Entry, s.OnError = "fail_permanent", jobhost.ContinueWorkflow }),
			step(echo("b", "a"), func(s *jobhost.Step) { s.Input = "steps.a.error.message" }),
		}, "completed a=failed b=completed", `"x"`},
		{"falls back", `"x"`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Entry, s.Fallback = "fail_permanent", "f" }), echo("b", "a"), echo("f"),
		}, "completed a=completed b=completed f=completed", `"x"`},
		{"falls back to a worker", `"x"`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Entry, s.Fallback = "fail_permanent", "test" }), echo("b", "a"),
		}, "completed a=completed b=completed", `"x"`},
		{"terminates", `5`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Terminate = "output == 5" }), echo("b", "a"),
		}, "completed a=completed b=cancelled", `5`},
		{"sleeps", `7`, []jobhost.Step{
			{Name: "s", Sleep: jobhost.Duration(20 * time.Millisecond)}, step(echo("a", "s"), func(s *jobhost.Step) { s.Input = "input" }),
		}, "completed s=completed a=completed", `7`},
		{"child", `{"n":4}`, []jobhost.Step{
			{Name: "c", Workflow: "child"}, echo("a", "c"),
		}, "completed c=completed a=completed", `{"from":4}`},
		{"retries", `"x"`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) {
				s.Entry, s.Retry = "fail_retry", &jobhost.StepRetry{MaxAttempts: 2, Initial: jobhost.Duration(time.Millisecond)}
			}),
		}, "failed a=failed", ``},
		{"too late", `""`, []jobhost.Step{
			step(echo("a"), func(s *jobhost.Step) { s.Entry, s.Deadline = "spin", jobhost.Duration(30*time.Millisecond) }),
		}, "failed a=failed", ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			id := startWorkflow(t, h, jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "w", Steps: test.steps}, Input: []byte(test.input)})
			got := workflowEnded(t, h, id)
			if text := statuses(&got); len(text) < len(test.want) || text[:len(test.want)] != test.want || string(got.Output) != test.output {
				all, _ := json.MarshalIndent(got, "", " ")
				t.Errorf("%s %s\n%s", text, got.Output, all)
			}
		})
	}
}
