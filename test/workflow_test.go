package test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// counted is a workflow in which each task counts itself under a key of its own, and returns the number:
// anything but 1 was done again.
func counted() *jobhost.Workflow {
	add := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: "count", Entry: "add", Needs: needs, Input: fmt.Sprintf(`workflow.id + "/%s"`, name)}
	}
	fan := add("fan", "a")
	fan.FanOut, fan.Input = "[10, 20, 30]", `workflow.id + "/fan" + string(index)`
	never := add("never", "a")
	never.When = "steps.a.output == 2"
	anyway := add("anyway", "never", "a")
	anyway.WhenSkipped = jobhost.RunAnyway
	all := add("all", "fan", "bad", "vain", "anyway", "up", "told", "sub")
	all.WhenSkipped = jobhost.RunAnyway
	w := &jobhost.Workflow{Name: "counted", Timeout: jobhost.Duration(time.Hour), Steps: []jobhost.Step{
		add("a"), fan, never, anyway,
		{Name: "bad", Worker: "echo", Entry: "fail_permanent", Needs: []string{"a"}, Fallback: "instead"},
		add("instead"),
		{Name: "vain", Worker: "echo", Entry: "fail_retry", Retry: &jobhost.StepRetry{MaxAttempts: 2, Initial: jobhost.Duration(time.Millisecond)}, OnError: jobhost.ContinueWorkflow},
		{Name: "nap", Sleep: jobhost.Duration(5 * time.Millisecond)},
		add("up", "nap"),
		{Name: "ask", Signal: "go", Needs: []string{"a"}},
		add("told", "ask"),
		{Name: "sub", Workflow: "below", Needs: []string{"a"}},
		all,
	}}
	for i := range 4 {
		w.Steps = append(w.Steps, add(fmt.Sprint("m", i), []string{"a", "m0", "m1", "m2"}[i]))
	}
	return w
}

const belowManifest = `
[worker.count]
plugin = "effects.wasm"
entry = "add"
pool_size = 2

[workflow.below]
[[workflow.below.step]]
name = "x"
worker = "count"
input = 'workflow.id + "/x"'
[[workflow.below.step]]
name = "nap"
needs = ["x"]
sleep = "5ms"
[[workflow.below.step]]
name = "y"
needs = ["nap"]
worker = "count"
input = 'workflow.id + "/y"'
`

// TestKillAtTransitions kills a host in the middle of a workflow, after each event of a step in
// the chaos run and after some otherwise. The next host must bring it to the same end, and no task
// may have had its effect twice.
func TestKillAtTransitions(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.write("effects.wasm", guests.Effects)
	site.write("manifest.toml", []byte(site.manifest()+belowManifest))
	host := site.start()
	want, transitions := map[string]string{}, 0
	startCounted(t, host, "wf-whole", func(jobhost.Event) bool { transitions++; return true })
	finishCounted(t, host, "wf-whole", want)
	for step, output := range want {
		if step != "" && strings.ContainsAny(output, "23456789") || step == "fan" && output != "completed [1,1,1]" {
			t.Fatalf("step %s is %s", step, output)
		}
	}
	stride := max(transitions/4, 1)
	if kills() > 10 {
		stride = 1
	}
	settled := map[string]int{} // by job, task and process: how often a success was reported
	for n := 1; n <= transitions; n += stride {
		id, seen := fmt.Sprint("wf-kill", n), 0
		startCounted(t, host, id, func(jobhost.Event) bool { seen++; return seen < n })
		host.kill()
		noteSettled(host, settled)
		host = site.start()
		got := map[string]string{}
		finishCounted(t, host, id, got)
		if !maps.Equal(got, want) {
			t.Errorf("killed after %d events of steps, of %d, it comes to\n%v\nnot\n%v", n, transitions, got, want)
		}
	}
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
	noteSettled(host, settled)
	for task, n := range settled {
		if n > 1 {
			t.Errorf("task %s has succeeded %d times", task, n)
		}
	}
	t.Logf("%d events of steps, a kill after every %d", transitions, stride)
}

// startCounted starts a workflow and receives events of its steps, until more returns false or it has ended.
func startCounted(t *testing.T, host *process, id string, more func(jobhost.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := host.StartWorkflow(ctx, jobhost.WorkflowStart{ID: id, Definition: counted()}); err != nil {
		t.Fatal(err)
	}
	if err := host.SignalWorkflow(ctx, id, jobhost.WorkflowSignal{Name: "go", ID: "once", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	for e, err := range host.Events(ctx, jobhost.EventQuery{Workflow: id, After: 1}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == jobhost.EventWorkflowEnded, e.Kind == jobhost.EventStep && !more(e):
			return
		}
	}
}

// finishCounted starts a workflow, if it isn't there, and waits for its end.
func finishCounted(t *testing.T, host *process, id string, left map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := host.StartWorkflow(ctx, jobhost.WorkflowStart{ID: id, Definition: counted()})
	if err != nil || !r.Deduplicated {
		t.Fatalf("an acknowledged workflow is not there any more: %+v, %v", r, err)
	}
	run, err := host.WaitWorkflow(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	left[""] = string(run.Status) + " " + string(run.Output)
	for i := range run.Steps {
		s := &run.Steps[i]
		left[s.Name] = string(s.Status) + " " + string(s.Output)
	}
}

// noteSettled counts the successes of tasks according to the log of a host.
func noteSettled(host *process, settled map[string]int) {
	for _, line := range strings.Split(host.logText(), "\n") {
		if strings.Contains(line, `msg="attempt settled"`) && value(line, "outcome") == "succeeded" && strings.HasPrefix(value(line, "job"), "wf-") {
			settled[value(line, "job")+"/"+value(line, "task")]++
		}
	}
}
