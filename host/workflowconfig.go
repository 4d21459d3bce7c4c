package host

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Workflows says which workflows a host has, and how it treats them. Zero values mean the defaults in brackets.
type Workflows struct {
	// Definitions are those that can be started by name; each name once.
	Definitions []jobhost.Workflow
	// MaxOpen bounds the workflows that run at one time [100,000].
	MaxOpen int
	// MaxNesting bounds how deep workflows are steps of each other [16].
	MaxNesting int
	// MaxAtOnce and MaxBytesAtOnce bound what one event may begin: tasks and bytes [100,000, 64 MiB].
	MaxAtOnce, MaxBytesAtOnce int
	// Retention says how long they are kept after their end, with their jobs [jobhost.DefaultWorkflowRetention].
	// It is a pointer because three zeros mean something: without end.
	Retention *jobhost.WorkflowRetention
}

// Check reports everything that is wrong with the settings by themselves. What definitions say is looked at
// when the host starts.
func (w *Workflows) Check() error {
	var errs []error
	if w.MaxOpen < 0 {
		errs = append(errs, fmt.Errorf("workflows: max_open %d is negative", w.MaxOpen))
	}
	if w.MaxNesting < 0 || w.MaxNesting > jobhost.MaxDepth {
		errs = append(errs, fmt.Errorf("workflows: max_nesting %d is not between 0 and %d", w.MaxNesting, jobhost.MaxDepth))
	}
	if w.Retention != nil {
		if err := w.Retention.Check(); err != nil {
			errs = append(errs, fmt.Errorf("workflows: retention: %w", err))
		}
	}
	seen := make(map[string]bool, len(w.Definitions))
	for i := range w.Definitions {
		name := w.Definitions[i].Name
		if seen[name] {
			errs = append(errs, fmt.Errorf("workflow %s is there twice", name))
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}

func (w *Workflows) setDefaults() {
	w.MaxOpen = cmp.Or(w.MaxOpen, 100_000)
	w.MaxNesting = cmp.Or(w.MaxNesting, 16)
	bounds := machine.DefaultBounds()
	w.MaxAtOnce, w.MaxBytesAtOnce = cmp.Or(w.MaxAtOnce, bounds.Tasks), cmp.Or(w.MaxBytesAtOnce, bounds.Bytes)
	if w.Retention == nil {
		retention := jobhost.DefaultWorkflowRetention()
		w.Retention = &retention
	}
}
