package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// checkSteps checks each step separately.
func (c *compiler) checkSteps() {
	for i := range c.w.Steps {
		s, field := &c.w.Steps[i], c.fields[i]
		c.checkDescription(field+".description", s.Description)
		kind := c.checkKind(s, field)
		c.checkTarget(s, kind, field)
		c.checkSense(s, kind, field)
		c.checkSettings(s, kind, field)
	}
}

// checkKind reports a step that does nothing, or more than one thing.
func (c *compiler) checkKind(s *jobhost.Step, field string) Kind {
	var kinds []string
	for _, k := range []struct {
		kind Kind
		set  bool
	}{{KindWorker, s.Worker != ""}, {KindWorkflow, s.Workflow != ""}, {KindSignal, s.Signal != ""}, {KindSleep, s.Sleep != 0}} {
		if k.set {
			kinds = append(kinds, string(k.kind))
		}
	}
	switch len(kinds) {
	case 0:
		c.faults.add(field, "set one of worker, workflow, signal and sleep", "the step does nothing")
	case 1:
		return Kind(kinds[0])
	default:
		c.faults.add(field, "make it one of them", "the step has %s", and(kinds))
	}
	return ""
}

// checkTarget looks up what a step runs.
func (c *compiler) checkTarget(s *jobhost.Step, kind Kind, field string) {
	switch kind {
	case KindWorker:
		c.checkWorker(s.Worker, s.Entry, field+".worker", field+".entry")
	case KindWorkflow:
		if err := jobhost.CheckWorkflow(s.Workflow); err != nil {
			c.faults.addAll(field+".workflow", err, false)
		} else if _, ok := c.env.Workflows[s.Workflow]; !ok && c.env.Workflows != nil && s.Workflow != c.w.Name {
			names := slices.Sorted(maps.Keys(c.env.Workflows))
			c.faults.add(field+".workflow", didYouMean(s.Workflow, names), "there is no workflow %s", text.Quote(s.Workflow, text.Short))
		}
	case KindSignal:
		if jobhost.CheckStep(s.Signal) != nil {
			c.faults.add(field+".signal", "use 1 to 63 of A-Z a-z 0-9 _ - beginning with a letter or digit", "%s is not the name of a signal", text.Quote(s.Signal, text.Short))
		}
	case KindSleep:
		if s.Sleep < 0 || time.Duration(s.Sleep) > jobhost.MaxDelay {
			c.faults.add(field+".sleep", "", "sleep %v is not between 1ns and %v", s.Sleep, jobhost.Duration(jobhost.MaxDelay))
		}
	}
}

func (c *compiler) checkWorker(name, entry, field, entryField string) {
	if err := (&jobhost.Spec{Worker: name}).Check(); err != nil {
		c.faults.addAll(field, err, false)
		return
	}
	if c.env.Workers == nil {
		return
	}
	worker, ok := c.env.Workers[name]
	if !ok {
		names := slices.Sorted(maps.Keys(c.env.Workers))
		c.faults.add(field, didYouMean(name, names), "there is no worker %s", text.Quote(name, text.Short))
		return
	}
	if entry != "" && worker.Entries != nil && !slices.Contains(worker.Entries, entry) {
		c.faults.add(entryField, didYouMean(entry, worker.Entries), "worker %s has no entry %s", name, text.Quote(entry, text.Short))
	}
}

// sense lists settings that are possible only for some kinds of steps.
func sense(s *jobhost.Step) []struct {
	field string
	set   bool
	kinds []Kind
	hint  string
} {
	worker, jobs := []Kind{KindWorker}, []Kind{KindWorker, KindWorkflow}
	all := []Kind{KindWorker, KindWorkflow, KindSignal}
	return []struct {
		field string
		set   bool
		kinds []Kind
		hint  string
	}{
		{"entry", s.Entry != "", worker, ""},
		{"input", s.Input != "", jobs, ""},
		{"content_type", s.ContentType != "", worker, ""},
		{"fan_out", s.FanOut != "", worker, "give the list to a step with a worker"},
		{"max_parallel", s.MaxParallel != 0, worker, ""},
		{"tasks", s.Tasks != 0, worker, ""},
		{"retry", s.Retry != nil, worker, ""},
		{"breaker", s.Breaker != nil, worker, ""},
		{"timeout", s.Timeout != 0, []Kind{KindWorker, KindSignal}, "use deadline for the step as a whole"},
		{"deadline", s.Deadline != 0, jobs, "use timeout"},
		{"priority", s.Priority != nil, jobs, ""},
		{"labels", len(s.Labels) > 0, jobs, ""},
		{"fallback", s.Fallback != "", all, ""},
		{"on_error", s.OnError != "", all, ""},
		{"terminate", s.Terminate != "", all, ""},
		{"output", s.Output, all, ""},
		{"input_schema", len(s.InputSchema) > 0, jobs, ""},
		{"output_schema", len(s.OutputSchema) > 0, all, ""},
	}
}

// checkSense reports settings that don't apply to a kind, or contradict each
// other.
func (c *compiler) checkSense(s *jobhost.Step, kind Kind, field string) {
	for _, setting := range sense(s) {
		if kind != "" && setting.set && !slices.Contains(setting.kinds, kind) {
			hint := setting.hint
			if kind == KindSleep {
				hint = "" // what helps others does not help here
			}
			c.faults.add(field+"."+setting.field, hint, "%s is not possible for a step with %s", setting.field, kind)
		}
	}
	if s.FanOut != "" && s.Tasks != 0 {
		c.faults.add(field+".tasks", "leave one of them out", "the step has fan_out and tasks")
	}
	if s.MaxParallel > 0 && s.FanOut == "" && kind == KindWorker {
		c.faults.add(field+".max_parallel", "", "max_parallel is for steps with fan_out")
	}
	if s.WhenSkipped != "" && len(s.Needs) == 0 {
		c.faults.add(field+".when_skipped", "", "when_skipped is for steps with needs")
	}
}

// checkSettings checks values.
func (c *compiler) checkSettings(s *jobhost.Step, kind Kind, field string) {
	spec := jobhost.Spec{
		Worker: "x", ContentType: s.ContentType, Entry: s.Entry, Tasks: s.Tasks, Labels: s.Labels, Deadline: time.Duration(s.Deadline),
	}
	if kind != KindSignal { // whose timeout can be long
		spec.Timeout = time.Duration(s.Timeout)
	} else if s.Timeout < 0 || time.Duration(s.Timeout) > jobhost.MaxDelay {
		c.faults.add(field+".timeout", "", "timeout %v is not between 0s and %v", s.Timeout, jobhost.Duration(jobhost.MaxDelay))
	}
	if s.Priority != nil {
		spec.Priority = *s.Priority
	}
	c.faults.addAll(field, spec.Check(), true)
	if s.MaxParallel < 0 {
		c.faults.add(field+".max_parallel", "", "max_parallel %d is less than 0", s.MaxParallel)
	}
	if s.Retry != nil {
		c.faults.addAll(field+".retry", s.Retry.Over(jobhost.DefaultRetry()).Check(), true)
	}
	if s.Breaker != nil {
		policy := s.Breaker.Policy(c.w.Name, s.Name)
		c.faults.addAll(field+".breaker", policy.Check(), true)
	}
	switch s.OnError {
	case "", jobhost.FailWorkflow, jobhost.ContinueWorkflow:
	default:
		c.faults.add(field+".on_error", "use fail or continue", "%s is not possible here", text.Quote(string(s.OnError), text.Short))
	}
	switch s.WhenSkipped {
	case "", jobhost.SkipToo, jobhost.RunAnyway, jobhost.RunWhatever:
	default:
		c.faults.add(field+".when_skipped", "use skip, run or run_always", "%s is not possible here", text.Quote(string(s.WhenSkipped), text.Short))
	}
}

// and formats a list for people.
func and(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " and "
		default:
			text += ", "
		}
		text += w
	}
	return text
}
