package manifest

import (
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

func stepFields() []field[stepSection] { //nolint:revive // it is a table, however long
	type f = field[stepSection]
	type step = stepSection
	return []f{
		{
			name: "name", kind: kindText, auto: "none, must be set", meaning: "Name of the step in its workflow: 1 to 63 of `A-Z a-z 0-9 _ -`, beginning with a letter or digit.",
			bind: func(_ string, s *step) setting { return word(&s.Name, "pay") },
		},
		{
			name: "description", kind: kindText, auto: "empty", meaning: "What the step is for, for people; up to 4KiB.",
			bind: func(_ string, s *step) setting { return word(&s.Description, "takes the money") },
		},
		{
			name: "worker", kind: kindText, auto: "none", meaning: "Worker that does it, one of the manifest. One of this and the next three must be set.",
			bind: func(_ string, s *step) setting { return word(&s.Worker, "payments") },
		},
		{
			name: "workflow", kind: kindText, auto: "none", meaning: "Workflow that does it, one of the manifest.",
			bind: func(_ string, s *step) setting { return word(&s.Workflow, "refund") },
		},
		{
			name: "signal", kind: kindText, auto: "none", meaning: "Name of a signal that it waits for, whose payload is the output.",
			bind: func(_ string, s *step) setting { return word(&s.Signal, "approval") },
		},
		{
			name: "sleep", kind: kindDuration, auto: "none", meaning: "Time that it waits, up to 3650d.",
			bind: func(_ string, s *step) setting { return given((*time.Duration)(&s.Sleep), 1, jobhost.MaxDelay) },
		},
		{
			name: "entry", kind: kindText, auto: "the worker's", meaning: "Export to call.",
			bind: func(_ string, s *step) setting { return word(&s.Entry, "charge") },
		},
		{
			name: "needs", kind: kindTexts, auto: "none", meaning: "Names of the steps that come before.",
			bind: func(_ string, s *step) setting { return shownIfAny(&s.Needs) },
		},
		{
			name: "when", kind: kindExpression, auto: "always", meaning: "Condition: if it is false the step is skipped.",
			bind: func(_ string, s *step) setting { return word(&s.When, "input.total > 0") },
		},
		{
			name: "when_skipped", kind: "`skip`, `run` or `run_always`", auto: "`skip`", meaning: "What becomes of it when one that it needs was skipped: it is skipped too; it runs if another was not; or it runs in any case.",
			bind: func(_ string, s *step) setting {
				return oneOf(&s.WhenSkipped, jobhost.SkipToo, jobhost.RunAnyway, jobhost.RunWhatever)
			},
		},
		{
			name: "input", kind: kindExpression, auto: "the workflow's input, the output of the only one needed, or a map of those of all needed", meaning: "What it gets. Text and bytes as they are, anything else as JSON.",
			bind: func(_ string, s *step) setting { return word(&s.Input, "steps.check.output.card") },
		},
		{
			name: "content_type", kind: kindText, auto: "none", meaning: "What its input is, such as `application/json`.",
			bind: func(_ string, s *step) setting { return word(&s.ContentType, "application/json") },
		},
		{
			name: "fan_out", kind: kindExpression, auto: "none", meaning: "List of which each element makes a task, with `input` or the element; the output is a list in the same order.",
			bind: func(_ string, s *step) setting { return word(&s.FanOut, "input.items") },
		},
		{
			name: "max_parallel", kind: kindWhole, auto: "no bound", meaning: "Most of those tasks that run at the same time; 1 to 1,000,000.",
			bind: func(_ string, s *step) setting { return wholeOrLeft(&s.MaxParallel, maxParallel) },
		},
		{
			name: "tasks", kind: kindWhole, auto: "`1`", meaning: "Tasks with the same input, 1 to 10,000.",
			bind: func(_ string, s *step) setting { return wholeOrLeft(&s.Tasks, jobhost.MaxTasks) },
		},
		{
			name: "timeout", kind: kindDuration, auto: "the worker's", meaning: "Longest time of one attempt, 1ms to 1d; of a signal how long it waits, up to 3650d, without which it waits forever.",
			bind: func(_ string, s *step) setting { return given((*time.Duration)(&s.Timeout), 1, jobhost.MaxDelay) },
		},
		{
			name: "deadline", kind: kindDuration, auto: "none", meaning: "Longest time of the step as a whole, with all its attempts; up to 3650d.",
			bind: func(_ string, s *step) setting { return given((*time.Duration)(&s.Deadline), 1, jobhost.MaxDelay) },
		},
		{
			name: "priority", kind: kindPriority, auto: "the workflow's", meaning: "Priority of its jobs.",
			bind: func(_ string, s *step) setting { return priorityIfSet(&s.Priority) },
		},
		{
			name: "fallback", kind: kindText, auto: "none", meaning: "Step, or else worker, that stands in for it once it has failed.",
			bind: func(_ string, s *step) setting { return word(&s.Fallback, "pay-later") },
		},
		{
			name: "on_error", kind: "`fail` or `continue`", auto: "`fail`", meaning: "What its failure means: the workflow fails, or goes on.",
			bind: func(_ string, s *step) setting {
				return oneOf(&s.OnError, jobhost.FailWorkflow, jobhost.ContinueWorkflow)
			},
		},
		{
			name: "terminate", kind: kindExpression, auto: "never", meaning: "Condition, looked at after it succeeded: if it is true the workflow ends with its output.",
			bind: func(_ string, s *step) setting { return word(&s.Terminate, "output.done") },
		},
		{
			name: "output", kind: kindFlag, auto: "`false`", meaning: "Its output is that of the workflow.",
			bind: func(_ string, s *step) setting { return ifSet(boolean(&s.Output), "false") },
		},
		{
			name: "input_schema", kind: kindSchema, auto: "anything", meaning: "What it takes, each task of it.",
			bind: func(dir string, s *step) setting { return jsonSchema(dir, &s.InputSchema, &s.inputFile) },
		},
		{
			name: "output_schema", kind: kindSchema, auto: "anything", meaning: "What it returns, each task of it.",
			bind: func(dir string, s *step) setting { return jsonSchema(dir, &s.OutputSchema, &s.outputFile) },
		},
	}
}

func stepRetryFields() []field[jobhost.StepRetry] {
	type f = field[jobhost.StepRetry]
	type retry = jobhost.StepRetry
	const same = "the worker's"
	delay := func(p *jobhost.Duration, most time.Duration) setting {
		return given((*time.Duration)(p), 1, most)
	}
	return []f{
		{
			name: "max_attempts", kind: kindWhole, auto: same, meaning: "Attempts in all, the first included; 1 to 1000.",
			bind: func(_ string, r *retry) setting { return wholeOrLeft(&r.MaxAttempts, jobhost.MaxAttempts) },
		},
		{
			name: "backoff", kind: "`exponential`, `linear` or `constant`", auto: same, meaning: "How the delay grows, as of the worker.",
			bind: func(_ string, r *retry) setting {
				return oneOf(&r.Backoff, jobhost.BackoffExponential, jobhost.BackoffLinear, jobhost.BackoffConstant)
			},
		},
		{
			name: "initial", kind: kindDuration, auto: same, meaning: "Delay before the second attempt, up to 1d and no more than `max`.",
			bind: func(_ string, r *retry) setting { return delay(&r.Initial, jobhost.MaxTimeout) },
		},
		{
			name: "multiplier", kind: kindNumber, auto: same, meaning: "For exponential backoff, 1 to 100.",
			bind: func(_ string, r *retry) setting { return numberIfSet(&r.Multiplier, 1, 100) },
		},
		{
			name: "increment", kind: kindDuration, auto: same, meaning: "For linear backoff, up to 1d.",
			bind: func(_ string, r *retry) setting { return delay(&r.Increment, jobhost.MaxTimeout) },
		},
		{
			name: "max", kind: kindDuration, auto: same + ", or `initial` if that is longer", meaning: "Longest delay, before the jitter; up to 30d.",
			bind: func(_ string, r *retry) setting { return delay(&r.Max, 30*jobhost.MaxTimeout) },
		},
		{
			name: "jitter", kind: kindNumber, auto: same, meaning: "Spreads delays by ± this part of them, 0 to 1.",
			bind: func(_ string, r *retry) setting {
				return pointer(&r.Jitter, func(p *float64) setting { return numberIn(p, 0, 1) })
			},
		},
	}
}

func stepBreakerFields() []field[jobhost.StepBreaker] {
	type f = field[jobhost.StepBreaker]
	type breaker = jobhost.StepBreaker
	d := jobhost.DefaultBreaker("")
	code := func(text string) string { return "`" + text + "`" }
	return []f{
		{
			name: "key", kind: kindText, auto: "`WORKFLOW/STEP`", meaning: "Steps and workers with the same key share one breaker; up to 256 bytes.",
			bind: func(_ string, b *breaker) setting { return textual(&b.Key, "payments", breakerKey) },
		},
		{
			name: "failures", kind: kindWhole, auto: code(strconv.Itoa(d.Failures)), meaning: "Failures in a row that open it; 1 to 1000.",
			bind: func(_ string, b *breaker) setting { return wholeOrLeft(&b.Failures, 1000) },
		},
		{
			name: "timeout", kind: kindDuration, auto: code(quote(jobhost.Duration(d.Timeout).String())), meaning: "How long it stays open before some tasks try again; 1ms to 1d.",
			bind: func(_ string, b *breaker) setting {
				return given((*time.Duration)(&b.Timeout), time.Millisecond, 24*time.Hour)
			},
		},
		{
			name: "probes", kind: kindWhole, auto: code(strconv.Itoa(d.Probes)), meaning: "How many of those must succeed before it closes, and how many run at once; 1 to 1000.",
			bind: func(_ string, b *breaker) setting { return wholeOrLeft(&b.Probes, 1000) },
		},
		{
			name: "when_open", kind: "`hold` or `fail`", auto: code(quote(string(d.WhenOpen))), meaning: "Whether tasks wait while it is open, without costing an attempt, or their attempts fail at once.",
			bind: func(_ string, b *breaker) setting {
				return oneOf(&b.WhenOpen, jobhost.HoldWhenOpen, jobhost.FailWhenOpen)
			},
		},
	}
}

// pointer is a setting whose zero value is something else than none.
func pointer[T any](p **T, bind func(*T) setting) setting {
	return setting{
		set: func(v any) error {
			t := new(T)
			err := bind(t).set(v)
			if err == nil {
				*p = t
			}
			return err
		},
		show: func() string {
			if *p == nil {
				return ""
			}
			return bind(*p).show()
		},
	}
}

func priorityIfSet(p **jobhost.Priority) setting { return pointer(p, priority) }

// numberIn is a number between two others.
func numberIn(p *float64, low, high float64) setting {
	return setting{
		set: func(v any) error {
			n := 0.0
			if err := number(&n).set(v); err != nil {
				return err
			}
			if !(n >= low && n <= high) {
				return wrong("", "%v is not between %v and %v", n, low, high)
			}
			*p = n
			return nil
		},
		show: number(p).show,
	}
}

// numberIfSet is left out while it is 0.
func numberIfSet(p *float64, low, high float64) setting { return ifSet(numberIn(p, low, high), "0") }

// shownIfAny is a list of text that others judge.
func shownIfAny(p *[]string) setting {
	s := texts(p, jobhost.MaxSteps, func(s string) (string, error) { return s, nil })
	return ifSet(s, "[]")
}
