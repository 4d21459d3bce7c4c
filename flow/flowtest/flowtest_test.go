package flowtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow"
	"github.com/jobhost/jobhost/flow/flowtest"
)

const (
	second = jobhost.Duration(time.Second)
	minute = jobhost.Duration(time.Minute)
)

// define returns a workflow of steps.
func define(steps ...jobhost.Step) jobhost.Workflow {
	return jobhost.Workflow{Name: "w", Steps: steps}
}

// step returns a step whose worker has its name.
func step(name string, change func(s *jobhost.Step), needs ...string) jobhost.Step {
	s := flow.Worker(name, name)
	s.Needs = needs
	if change != nil {
		change(&s)
	}
	return s
}

func TestStepsRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", nil), step("b", nil), step("c", nil, "a", "b")))
	takes := func(d time.Duration) flowtest.Func {
		return func(c *flowtest.Call) (any, error) {
			c.Takes(d)
			return c.Step, nil
		}
	}
	k.Worker("a", takes(2*time.Second))
	k.Worker("b", takes(3*time.Second))
	k.Worker("c", func(c *flowtest.Call) (any, error) {
		var in map[string]string
		c.JSON(&in)
		return in["a"] + in["b"], nil
	})
	res := k.Start(nil).Wait()
	var got string
	if res.Output(&got); got != "ab" || res.Status != jobhost.WorkflowCompleted {
		t.Errorf("got %q, %s", got, res.Status)
	}
	want := "0s workflow started\n0s a started\n0s b started\n2s a completed\n3s b completed\n3s c started\n3s c completed\n3s workflow completed\n"
	if got := res.Trace().String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s := res.Step("c"); !s.StartedAt.Equal(flowtest.Epoch().Add(3*time.Second)) || s.Attempts != 1 || s.Runs != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	slow := func(s *jobhost.Step) {
		s.Retry = &jobhost.StepRetry{MaxAttempts: 4, Backoff: jobhost.BackoffLinear, Initial: second, Increment: 2 * second}
	}
	for _, tt := range []struct {
		name   string
		err    error
		change func(s *jobhost.Step)
		want   string
	}{
		{"as workers do", errors.New("no"), nil, "0s 1s 3s failed"},
		{"as the step says", errors.New("no"), slow, "0s 1s 4s 9s failed"},
		{"after a time", flowtest.Retry(errors.New("no"), time.Minute), nil, "0s 1m 2m failed"},
		{"never", flowtest.Permanent(errors.New("no")), nil, "0s failed"},
		{"never, wrapped", fmt.Errorf("charge: %w", flowtest.Permanent(errors.New("no"))), nil, "0s failed"},
		{"not later than it says", flowtest.Retry(flowtest.Permanent(errors.New("no")), 1), nil, "0s failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := flowtest.New(t, define(step("a", tt.change)))
			var got []string
			k.Worker("a", func(*flowtest.Call) (any, error) {
				got = append(got, jobhost.Duration(k.Now().Sub(flowtest.Epoch())).String())
				return nil, tt.err
			})
			res := k.Start(nil).Wait()
			if got := strings.Join(append(got, string(res.Status)), " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if res.EndedBy != "a" || res.Failure == nil || res.Failure.Attempt != len(got) {
				t.Errorf("got %+v", res)
			}
		})
	}
}

func TestTheThirdAttemptSucceeds(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", nil)))
	k.Worker("a", func(c *flowtest.Call) (any, error) {
		if c.Takes(time.Second); c.Attempt < 3 {
			return nil, fmt.Errorf("failure %d", c.Attempt)
		}
		return c.Attempt, nil
	})
	run := k.Start(nil)
	if run.Advance(time.Second); run.Step("a").Status != jobhost.StepRetrying || run.Step("a").Failure.Message != "failure 1" {
		t.Errorf("got %+v", run.Step("a"))
	}
	var got int
	if run.Wait().Step("a").Output(&got); got != 3 || run.Step("a").Attempts != 3 {
		t.Errorf("got %+v", run.Step("a"))
	}
}

func TestAttemptsTimeOut(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", func(s *jobhost.Step) { s.Timeout = 10 * second })))
	k.Worker("a", func(c *flowtest.Call) (any, error) {
		if c.Attempt == 1 {
			c.Takes(time.Hour)
		}
		return "done", nil
	})
	res := k.Start(nil).Wait()
	if s := res.Step("a"); s.Status != jobhost.StepCompleted || s.EndedAt.Sub(s.StartedAt) != 11*time.Second {
		t.Errorf("got %+v", s)
	}
}

func TestDeadlineEndsAllAttempts(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", func(s *jobhost.Step) { s.Deadline, s.Fallback = 2*second, "spare" })))
	k.Worker("a", func(*flowtest.Call) (any, error) { return nil, errors.New("no") })
	k.Worker("spare", func(c *flowtest.Call) (any, error) {
		return fmt.Sprint(c.Worker, c.Fallback, string(c.Input)), nil
	})
	res := k.Start(7).Wait()
	var got string
	if res.Output(&got); got != "sparetrue7" {
		t.Errorf("got %s", got)
	}
	if s := res.Step("a"); s.Attempts != 3 || !s.Fallback || s.Failure.Code != jobhost.FailTimeout || s.EndedAt.Sub(s.StartedAt) != 2*time.Second {
		t.Errorf("got %+v\n%s", s, res.Trace())
	}
}

func TestTimeoutOfTheWorkflow(t *testing.T) {
	t.Parallel()
	w := define(jobhost.Step{Name: "nap", Sleep: 2 * minute})
	w.Timeout = minute
	res := flowtest.New(t, w).Start(nil).Wait()
	if res.Status != jobhost.WorkflowFailed || res.Failure.Code != jobhost.FailTimeout || res.EndedAt.Sub(res.StartedAt) != time.Minute {
		t.Errorf("got %+v", res)
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(jobhost.Step{Name: "nap", Sleep: minute}, step("a", nil, "nap")))
	k.Always("a", json.RawMessage(`{"x": 1}`))
	run := k.Start(nil)
	run.Advance(59 * time.Second)
	if s := run.Step("nap"); s.Status != jobhost.StepRunning || s.Reason != "sleeps until 2000-01-01 00:01:00Z" {
		t.Errorf("got %+v", s)
	}
	run.Advance(time.Second)
	if res := run.Look(); string(res.Bytes()) != `{"x": 1}` || res.EndedAt.Sub(res.StartedAt) != time.Minute {
		t.Errorf("got %+v", res)
	}
}

func TestConditionsAndTermination(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(
		step("a", nil),
		step("b", func(s *jobhost.Step) { s.When = "steps.a.output > 1" }, "a"),
		step("c", func(s *jobhost.Step) { s.WhenSkipped, s.Terminate = jobhost.RunAnyway, "output == 'stop'" }, "a", "b"),
		step("d", nil, "c"),
	))
	k.Always("a", 1)
	k.Always("c", "stop")
	res := k.Start(nil).Wait()
	if res.Step("b").Status != jobhost.StepSkipped || res.Step("d").Status != jobhost.StepCancelled || res.EndedBy != "c" {
		t.Errorf("got %+v", res.Steps())
	}
	if string(res.Bytes()) != `"stop"` {
		t.Errorf("got %s", res.Bytes())
	}
}

func TestFallbackStep(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(
		step("a", func(s *jobhost.Step) { s.Fallback = "spare" }),
		step("spare", func(s *jobhost.Step) { s.Input = "steps.a.error.code" }),
		step("b", nil, "a"),
	))
	k.Worker("a", func(*flowtest.Call) (any, error) {
		return nil, flowtest.Fail(jobhost.Failure{Code: "declined", Message: "no funds"})
	})
	k.Worker("spare", func(c *flowtest.Call) (any, error) { return c.Input, nil })
	k.Worker("b", func(c *flowtest.Call) (any, error) { return c.Input, nil })
	res := k.Start(nil).Wait()
	if string(res.Bytes()) != "declined" || !res.Step("a").Fallback || res.Step("a").Failure.Code != "declined" {
		t.Errorf("got %s\n%s", res.Bytes(), res.Trace())
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(
		step("each", func(s *jobhost.Step) { s.FanOut, s.Input, s.MaxParallel = "input", "{'v': item, 'i': index}", 2 }),
		step("thrice", func(s *jobhost.Step) { s.Tasks = 3 }),
		step("none", func(s *jobhost.Step) { s.FanOut = "[]" }),
	))
	most, now := 0, 0
	k.Worker("each", func(c *flowtest.Call) (any, error) {
		var in struct{ V, I int }
		c.JSON(&in)
		c.Takes(time.Second)
		if in.I != c.Task || c.Tasks != 5 {
			t.Errorf("task %d of %d has got %+v", c.Task, c.Tasks, in)
		}
		if at := int(k.Now().Sub(flowtest.Epoch()) / time.Second); at == most {
			now++
		} else {
			most, now = at, 1
		}
		if now > 2 {
			t.Errorf("%d tasks run at the same time", now)
		}
		return in.V * in.V, nil
	})
	k.Worker("thrice", func(c *flowtest.Call) (any, error) {
		if c.Task == 1 && c.Attempt == 1 {
			return nil, errors.New("no")
		}
		return []byte(fmt.Sprint("t", c.Task)), nil
	})
	res := k.Start([]int{1, 2, 3, 4, 5}).Wait()
	for name, want := range map[string]string{"each": "[1,4,9,16,25]", "thrice": `["t0","t1","t2"]`, "none": "[]"} {
		if got := res.Step(name).Bytes(); string(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if s := res.Step("each"); s.EndedAt.Sub(s.StartedAt) != 3*time.Second {
		t.Errorf("it took %v", s.EndedAt.Sub(s.StartedAt))
	}
	if s := res.Step("thrice"); s.Attempts != 4 || s.EndedAt.Sub(s.StartedAt) != time.Second {
		t.Errorf("got %+v", s)
	}
}

func TestMaxParallel(t *testing.T) {
	t.Parallel()
	w := define(step("a", nil), step("b", nil), step("c", nil))
	w.MaxParallel = 2
	k := flowtest.New(t, w)
	for _, name := range []string{"a", "b", "c"} {
		k.Worker(name, func(c *flowtest.Call) (any, error) {
			c.Takes(time.Minute)
			return nil, nil
		})
	}
	res := k.Start(nil).Wait()
	if s := res.Step("c"); s.StartedAt.Sub(res.StartedAt) != time.Minute || res.EndedAt.Sub(res.StartedAt) != 2*time.Minute {
		t.Errorf("got\n%s", res.Trace())
	}
}

func TestExpressionErrorsFailTheStep(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", func(s *jobhost.Step) { s.Input = "input.none" })))
	res := k.Start(map[string]int{}).Wait()
	if res.Failure == nil || res.Failure.Code != jobhost.FailExpression || res.EndedBy != "a" {
		t.Errorf("got %+v", res)
	}
}

func TestNoDataAreNoData(t *testing.T) {
	t.Parallel()
	k := flowtest.New(t, define(step("a", nil), step("b", nil, "a")))
	k.Always("a", nil)
	k.Worker("b", func(c *flowtest.Call) (any, error) { return len(c.Input), nil })
	var got int
	if k.Start(nil).Wait().Output(&got); got != 0 {
		t.Errorf("got %d", got)
	}
}

// TestManySteps is about how long a large workflow takes to test.
func TestManySteps(t *testing.T) {
	t.Parallel()
	w := jobhost.Workflow{Name: "wide"}
	for i := range 10_000 {
		s := flow.Worker(fmt.Sprint("s", i), "w")
		if i > 0 {
			s.Needs = []string{"s0"}
		}
		w.Steps = append(w.Steps, s)
	}
	k := flowtest.New(t, w)
	k.Always("w", 1)
	if res := k.Start(nil).Wait(); res.Status != jobhost.WorkflowCompleted {
		t.Errorf("got %+v", res)
	}
}
