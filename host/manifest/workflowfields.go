package manifest

import (
	"time"

	"github.com/jobhost/jobhost"
)

const (
	maxOpen     = 10_000_000
	maxParallel = 1_000_000

	kindSchema     = "JSON Schema as a table, or `{ file = PATH }`"
	kindExpression = "expression"
)

func workflowsFields() []field[WorkflowSettings] {
	type f = field[WorkflowSettings]
	return []f{
		{
			name: "max_open", kind: kindWhole, meaning: "Most workflows that run at the same time, those that wait included; over it starts are answered `exhausted` (429). 1 to 10,000,000.",
			bind: func(_ string, s *WorkflowSettings) setting { return whole(&s.MaxOpen, 1, maxOpen) },
		},
		{
			name: "max_nesting", kind: kindWhole, meaning: "How deep workflows may be steps of workflows, the outermost counted; 1 to 32.",
			bind: func(_ string, s *WorkflowSettings) setting { return whole(&s.MaxNesting, 1, jobhost.MaxDepth) },
		},
	}
}

func workflowRetentionFields() []field[jobhost.WorkflowRetention] {
	type f = field[jobhost.WorkflowRetention]
	type retention = jobhost.WorkflowRetention
	kept := func(p *time.Duration) setting {
		return durationOr("forever", p, time.Millisecond, jobhost.MaxRetention)
	}
	return []f{
		{
			name: "completed", kind: kindKept, meaning: "How long a workflow is kept after it completed, with the jobs of its steps.",
			bind: func(_ string, r *retention) setting { return kept(&r.Completed) },
		},
		{
			name: "failed", kind: kindKept, meaning: "How long after it failed.",
			bind: func(_ string, r *retention) setting { return kept(&r.Failed) },
		},
		{
			name: "cancelled", kind: kindKept, meaning: "How long after it was cancelled.",
			bind: func(_ string, r *retention) setting { return kept(&r.Cancelled) },
		},
	}
}

func workflowFields() []field[workflowSection] {
	type f = field[workflowSection]
	type workflow = workflowSection
	return []f{
		{
			name: "file", kind: kindPath, auto: "none", meaning: "JSON file with the whole definition, instead of everything else here. Paths are as those of plugins.",
			bind: func(dir string, w *workflow) setting {
				p := pathTo(&w.file, dir, "flows/orders.json", resolveWithin)
				if w.file == "" {
					p.show = func() string { return "" }
				}
				return p
			},
		},
		{
			name: "description", kind: kindText, auto: "empty", meaning: "What the workflow is for, for people; up to 4KiB.",
			bind: func(_ string, w *workflow) setting { return word(&w.Description, "handles an order") },
		},
		{
			name: "input_schema", kind: kindSchema, auto: "anything", meaning: "What it is started with. What doesn't fit is refused.",
			bind: func(dir string, w *workflow) setting { return jsonSchema(dir, &w.InputSchema, &w.inputFile) },
		},
		{
			name: "output_schema", kind: kindSchema, auto: "anything", meaning: "What it returns.",
			bind: func(dir string, w *workflow) setting { return jsonSchema(dir, &w.OutputSchema, &w.outputFile) },
		},
		{
			name: "output", kind: kindExpression, auto: "the output of the step with `output`, of the only last step, or a map of those of the last ones", meaning: "What it returns.",
			bind: func(_ string, w *workflow) setting { return word(&w.Output, "steps.pay.output.id") },
		},
		{
			name: "timeout", kind: kindDuration, meaning: "Longest time of the whole; up to 3650d. 0s = any.",
			bind: func(_ string, w *workflow) setting {
				return duration((*time.Duration)(&w.Timeout), 0, jobhost.MaxDelay)
			},
		},
		{
			name: "priority", kind: kindPriority, meaning: "Priority of the jobs of its steps.",
			bind: func(_ string, w *workflow) setting { return priorityOrNormal(&w.Priority) },
		},
		{
			name: "max_parallel", kind: kindWhole, meaning: "Most steps whose jobs or workflows run at the same time, up to 1,000,000; 0 = no bound.",
			bind: func(_ string, w *workflow) setting { return whole(&w.MaxParallel, 0, maxParallel) },
		},
	}
}

// priorityOrNormal is a priority of which normal is the same as none.
func priorityOrNormal(p *jobhost.Priority) setting {
	s := priority(p)
	return setting{show: s.show, set: func(v any) error {
		err := s.set(v)
		if *p == jobhost.Normal {
			*p = 0
		}
		return err
	}}
}

// word is text that others judge; empty = it is left out.
func word[S ~string](p *S, example string) setting {
	return parsed(example,
		func(s string) error {
			*p = S(s)
			return nil
		},
		func() string { return string(*p) })
}
