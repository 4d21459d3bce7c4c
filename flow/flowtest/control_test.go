package flowtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow/flowtest"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	wait := jobhost.Step{Name: "wait", Signal: "approved", Timeout: minute, OnError: jobhost.ContinueWorkflow}
	w := define(wait, step("after", func(s *jobhost.Step) { s.Input = "[steps.wait.status, steps.wait.output]" }, "wait"))
	for name, tt := range map[string]struct {
		at   time.Duration
		want string
	}{"in time": {time.Second, `["completed",{"by":"Ada"}]`}, "never": {-1, `["failed",null]`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := flowtest.New(t, w)
			k.Worker("after", func(c *flowtest.Call) (any, error) { return c.Input, nil })
			run := k.Start(nil)
			if tt.at >= 0 {
				run.Advance(tt.at)
				run.Signal("approved", map[string]string{"by": "Ada"})
			}
			if got := run.Wait().Step("after").Bytes(); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSignalsOfFunctions(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", nil), jobhost.Step{Name: "wait", Signal: "go", Needs: []string{"a"}}))
	k.Worker("a", func(c *flowtest.Call) (any, error) {
		c.Run.Signal("go", c.Run.ID())
		c.Takes(time.Second)
		return nil, nil
	})
	var got string
	if k.Start(nil).Wait().Output(&got); got != "wf-1" {
		t.Errorf("got %s", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	child := jobhost.Workflow{Name: "child", Steps: []jobhost.Step{{Name: "long", Sleep: 60 * minute}}}
	k := flowtest.New(t, define(step("a", nil), jobhost.Step{Name: "c", Workflow: "child"}), child)
	k.Worker("a", func(c *flowtest.Call) (any, error) {
		c.Takes(time.Hour)
		return nil, nil
	})
	run := k.Start(nil)
	inner := run.Child("c")
	run.Advance(time.Minute)
	run.Cancel("no more")
	run.Cancel("again")
	res := run.Wait()
	if res.Status != jobhost.WorkflowCancelled || res.Reason != "no more" || res.EndedAt.Sub(res.StartedAt) != time.Minute {
		t.Errorf("got %+v", res)
	}
	if inner.Look().Status != jobhost.WorkflowCancelled || run.Step("a").Status != jobhost.StepCancelled {
		t.Errorf("got\n%s\n%s", inner.Look().Trace(), res.Trace())
	}
	if run.Advance(2 * time.Hour); run.Step("a").Attempts != 1 {
		t.Errorf("it goes on: %+v", run.Step("a"))
	}
}

func TestWorkflowsWithinWorkflows(t *testing.T) {
	t.Parallel()
	child := jobhost.Workflow{Name: "child", Labels: map[string]string{"a": "child"}, Output: "[workflow.labels, steps.double.output]", Steps: []jobhost.Step{
		step("double", nil),
	}}
	w := define(jobhost.Step{Name: "one", Workflow: "child", Input: "input.n"}, jobhost.Step{Name: "two", Workflow: "child", Input: "steps.one.output[1]", Needs: []string{"one"}})
	k := flowtest.New(t, w, child)
	k.Worker("double", func(c *flowtest.Call) (any, error) {
		var n int
		c.JSON(&n)
		return 2 * n, nil
	})
	k.Labels(map[string]string{"b": "run"})
	run := k.Start(map[string]int{"n": 3})
	if got := string(run.Wait().Bytes()); got != `[{"a":"child"},12]` {
		t.Errorf("got %s", got)
	}
	if inner := run.Child("two"); inner.Name() != "child" || !strings.HasPrefix(inner.ID(), "wf-1.two.") {
		t.Errorf("got %s %s", inner.Name(), inner.ID())
	}
}

func TestRetryByHand(t *testing.T) {
	t.Parallel()
	child := jobhost.Workflow{Name: "child", Steps: []jobhost.Step{step("a", nil)}}
	k := flowtest.New(t, define(jobhost.Step{Name: "c", Workflow: "child"}, step("b", nil, "c")), child)
	broken := true
	k.Worker("a", func(*flowtest.Call) (any, error) {
		if broken {
			return nil, flowtest.Permanent(errors.New("no"))
		}
		return "mended", nil
	})
	k.Worker("b", func(c *flowtest.Call) (any, error) { return c.Input, nil })
	run := k.Start(nil)
	if run.Wait().Status != jobhost.WorkflowFailed {
		t.Fatalf("got %s", run.Look().Trace())
	}
	run.Retry("")
	if res := run.Wait(); res.Status != jobhost.WorkflowFailed || res.Step("c").Runs != 2 {
		t.Fatalf("got %s", res.Trace())
	}
	broken = false
	run.Child("c").Retry("a") // which lets the outer one continue
	if res := run.Wait(); string(res.Bytes()) != `"mended"` || res.Step("c").Runs != 2 {
		t.Errorf("got %s, %s", res.Bytes(), res.Trace())
	}
}

func TestTheSameCourseEachTime(t *testing.T) {
	t.Parallel()
	trace := func() string {
		w := define(
			step("a", func(s *jobhost.Step) { s.Tasks = 3 }),
			step("b", func(s *jobhost.Step) { s.Deadline, s.Fallback = 2*second, "d" }),
			step("c", nil, "a", "b"),
			jobhost.Step{Name: "wait", Signal: "go", Timeout: 2 * second, OnError: jobhost.ContinueWorkflow},
		)
		w.MaxParallel = 2
		k := flowtest.New(t, w)
		for _, name := range []string{"a", "b", "c", "d"} {
			k.Worker(name, func(c *flowtest.Call) (any, error) {
				if c.Takes(time.Second); c.Attempt == 1 {
					return nil, errors.New("no")
				}
				return c.Task, nil
			})
		}
		return k.Start(nil).Wait().Trace().String()
	}
	want := trace()
	for range 20 {
		if got := trace(); got != want {
			t.Fatalf("got\n%s\nand before\n%s", got, want)
		}
	}
	t.Log(want)
}
