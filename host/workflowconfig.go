package host

import (
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
)

// Workflows says which workflows a host has, and how it treats them. Zero values mean the defaults in brackets.
type Workflows struct {
	// Definitions are those that can be started by name.
	Definitions []jobhost.Workflow
	// MaxOpen bounds the workflows that run at one time [100,000].
	MaxOpen int
	// MaxNesting bounds how deep workflows are steps of each other [16].
	MaxNesting int
	// Retention says how long they are kept after their end, with their jobs [jobhost.DefaultWorkflowRetention].
	Retention jobhost.WorkflowRetention
}

// Check reports everything that is wrong with the settings by themselves. What definitions say is looked at
// when the host starts.
func (w *Workflows) Check() error {
	var errs []error
	for name, n := range map[string]int{"max_open": w.MaxOpen, "max_nesting": w.MaxNesting} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("workflows: %s %d is negative", name, n))
		}
	}
	return errors.Join(append(errs, w.Retention.Check())...)
}

func (w *Workflows) setDefaults() {
	if w.MaxOpen == 0 {
		w.MaxOpen = 100_000
	}
	if w.MaxNesting == 0 {
		w.MaxNesting = 16
	}
	if w.Retention == (jobhost.WorkflowRetention{}) {
		w.Retention = jobhost.DefaultWorkflowRetention()
	}
}
