package plan

import (
	"fmt"

	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Machine returns the state machine of the workflow's runs, with the steps in the
// order of the definition: its indexes are those of [Step.Source]. Every plan has
// one; an error is a fault of this package.
func (p *Plan) Machine() (*machine.Machine, error) {
	graph, err := machine.GraphOf(&p.Workflow)
	if err != nil {
		return nil, fmt.Errorf("machine of plan %s: %w", p.Workflow.Name, err)
	}
	e := &evaluator{plan: p, at: make([]int32, len(p.Steps))}
	for i := range p.Steps {
		e.at[p.Steps[i].Source] = int32(i)
	}
	c, err := machine.New(graph, e)
	if err != nil {
		return nil, fmt.Errorf("machine of plan %s: %w", p.Workflow.Name, err)
	}
	return c, nil
}
