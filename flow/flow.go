// Package flow builds definitions of workflows in Go. The result is a
// [jobhost.Workflow], as from a manifest or JSON; it is validated by the host,
// which knows its workers.
package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jobhost/jobhost"
)

// Builder is a workflow under construction. Mistakes are collected for
// [Builder.Workflow]. It is not safe for concurrent use.
type Builder struct {
	w    jobhost.Workflow
	errs []error
}

// New begins a workflow.
func New(name string) *Builder { return &Builder{w: jobhost.Workflow{Name: name}} }

// From begins with a copy of an existing workflow.
func From(w jobhost.Workflow) *Builder { return &Builder{w: clone(w)} }

// Worker returns a step that runs a job.
func Worker(name, worker string) jobhost.Step { return jobhost.Step{Name: name, Worker: worker} }

// Set changes the settings of the workflow as a whole.
func (b *Builder) Set(change func(w *jobhost.Workflow)) *Builder {
	change(&b.w)
	return b
}

// Add adds steps unchanged.
func (b *Builder) Add(steps ...jobhost.Step) *Builder {
	for _, s := range steps {
		if b.find(s.Name) != nil {
			b.fault(s.Name, "step %q is there already", s.Name)
			continue
		}
		b.w.Steps = append(b.w.Steps, cloneStep(s))
	}
	return b
}

// Chain adds steps, each of which also needs the previous one.
func (b *Builder) Chain(steps ...jobhost.Step) *Builder {
	for i, s := range steps {
		if i > 0 {
			s.Needs = with(s.Needs, steps[i-1].Name)
		}
		b.Add(s)
	}
	return b
}

// Parallel adds steps that all also need an existing one.
func (b *Builder) Parallel(after string, steps ...jobhost.Step) *Builder {
	for _, s := range steps {
		s.Needs = with(s.Needs, after)
		b.Add(s)
	}
	return b
}

// Join adds a step that also needs others.
func (b *Builder) Join(s jobhost.Step, after ...string) *Builder {
	for _, name := range after {
		s.Needs = with(s.Needs, name)
	}
	return b.Add(s)
}

// Update changes a step. If its name changes, it also changes where others need
// it; expressions are left unchanged.
func (b *Builder) Update(name string, change func(s *jobhost.Step)) *Builder {
	s := b.find(name)
	if s == nil {
		b.fault(name, "there is no step %q to update", name)
		return b
	}
	change(s)
	if s.Name == name {
		return b
	}
	for i := range b.w.Steps {
		other := &b.w.Steps[i]
		if k := slices.Index(other.Needs, name); k >= 0 {
			other.Needs[k] = s.Name
		}
		if other.Fallback == name {
			other.Fallback = s.Name
		}
	}
	return b
}

// Remove removes a step. Steps that need it now need what it needed, and it is
// no longer a fallback.
func (b *Builder) Remove(name string) *Builder {
	gone := b.find(name)
	if gone == nil {
		b.fault(name, "there is no step %q to remove", name)
		return b
	}
	needs := gone.Needs
	b.w.Steps = slices.DeleteFunc(b.w.Steps, func(s jobhost.Step) bool { return s.Name == name })
	for i := range b.w.Steps {
		s := &b.w.Steps[i]
		if k := slices.Index(s.Needs, name); k >= 0 {
			s.Needs = slices.Delete(s.Needs, k, k+1)
			for _, need := range needs {
				s.Needs = with(s.Needs, need)
			}
		}
		if s.Fallback == name {
			s.Fallback = ""
		}
	}
	return b
}

// Clone returns an independent copy of the builder.
func (b *Builder) Clone() *Builder {
	return &Builder{w: clone(b.w), errs: slices.Clone(b.errs)}
}

// Workflow returns what was built, or all mistakes that were made on the way,
// each an invalid [jobhost.Error]. The builder can still be used.
func (b *Builder) Workflow() (jobhost.Workflow, error) {
	return clone(b.w), errors.Join(b.errs...)
}

func (b *Builder) find(name string) *jobhost.Step {
	for i := range b.w.Steps {
		if b.w.Steps[i].Name == name {
			return &b.w.Steps[i]
		}
	}
	return nil
}

func (b *Builder) fault(step, format string, args ...any) {
	b.errs = append(b.errs, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "steps." + step, Message: fmt.Sprintf(format, args...)})
}

func with(needs []string, name string) []string {
	if slices.Contains(needs, name) {
		return needs
	}
	return append(slices.Clone(needs), name)
}

func clone(w jobhost.Workflow) jobhost.Workflow {
	w.Labels = maps.Clone(w.Labels)
	w.InputSchema, w.OutputSchema = slices.Clone(w.InputSchema), slices.Clone(w.OutputSchema)
	steps := make([]jobhost.Step, len(w.Steps))
	for i, s := range w.Steps {
		steps[i] = cloneStep(s)
	}
	w.Steps = steps
	return w
}

func cloneStep(s jobhost.Step) jobhost.Step {
	s.Needs, s.Labels = slices.Clone(s.Needs), maps.Clone(s.Labels)
	s.InputSchema, s.OutputSchema = slices.Clone(s.InputSchema), slices.Clone(s.OutputSchema)
	if s.Retry != nil {
		retry := *s.Retry
		if retry.Jitter != nil {
			jitter := *retry.Jitter
			retry.Jitter = &jitter
		}
		s.Retry = &retry
	}
	if s.Breaker != nil {
		breaker := *s.Breaker
		s.Breaker = &breaker
	}
	if s.Priority != nil {
		priority := *s.Priority
		s.Priority = &priority
	}
	return s
}
