package plan

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/expr"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/internal/text"
)

// scene provides the expressions of a step with the data of a running workflow. It
// reads only what they refer to.
type scene struct {
	e *evaluator
	v *machine.View
	// asItIs: large data is read too, to be passed on.
	asItIs bool
}

var input = machine.Source{Kind: machine.Input}

// data returns what programs, some of which may be nil, refer to.
func (s *scene) data(programs ...*expr.Program) (*expr.Data, error) {
	d := &expr.Data{Steps: s.stepData}
	for _, p := range programs {
		if p == nil {
			continue
		}
		s.asItIs = s.asItIs || p.Passes().Root != ""
		if p.Uses("workflow") {
			d.Workflow = expr.WorkflowData{ID: s.v.ID(), Name: s.e.plan.Workflow.Name, Labels: s.v.Labels(), Started: s.v.Started()}
		}
	}
	for _, p := range programs {
		if p != nil && d.Input == nil && (p.Uses("input") || p.Passes().Root == "input") {
			if d.InputDecoded = s.decoded(input); d.InputDecoded.Known() {
				break
			}
			var err error
			if d.Input, err = s.read(input, "the input of the workflow"); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (s *scene) stepData(name string) (expr.StepData, error) {
	i, ok := s.e.plan.byName[name]
	if !ok {
		return expr.StepData{}, fmt.Errorf("there is no step %s", text.Quote(name, text.Short))
	}
	at := s.e.plan.Steps[i].Source
	d := expr.StepData{Status: s.v.Status(at)}
	if !d.Status.Ended() { // a fallback sees the step that it replaces
		d.Status = jobhost.StepFailed
	}
	var err error
	if d.Failure, err = s.v.Failure(at); err != nil {
		return expr.StepData{}, err
	}
	from := s.v.Source(at)
	if from.Kind == machine.Nothing {
		return d, nil
	}
	if d.Decoded = s.decoded(from); !d.Decoded.Known() {
		d.Output, err = s.read(from, "the output of step "+text.Quote(name, text.Short))
	}
	return d, err
}

// decoded returns where to keep decoded data for other expressions of the same
// transition: thousands of steps may refer to one output. nil = the data is needed
// undecoded.
func (s *scene) decoded(from machine.Source) *expr.Decoded {
	if s.asItIs {
		return nil
	}
	memo := s.v.Memo()
	kept, ok := memo[from].(*expr.Decoded)
	if !ok {
		kept = &expr.Decoded{}
		memo[from] = kept
	}
	return kept
}

// read returns data, or an error if it is too large for expressions.
func (s *scene) read(from machine.Source, what string) ([]byte, error) {
	if !s.asItIs {
		fits, err := s.v.Fits(from, jobhost.MaxStepData)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		if !fits {
			return nil, &jobhost.Error{
				Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("%s is longer than the %d bytes that expressions look at", what, jobhost.MaxStepData),
				Hint: "keep what expressions need small, and pass large data from step to step without them",
			}
		}
	}
	data, err := s.v.Read(from)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if data == nil { // there is data, of length 0
		data = []byte{}
	}
	return data, nil
}

// passed returns the location of the data that a program passes on unchanged, if it
// does. Data that may be JSON text, which a payload has without its quotes, must be
// examined; but not large data, which is passed on as it is.
func (s *scene) passed(p *expr.Program) (at machine.Source, ok bool, err error) {
	switch passes := p.Passes(); passes.Root {
	case "input":
		at = input
	case "steps":
		i, found := s.e.plan.byName[passes.Step]
		if !found {
			return at, false, nil
		}
		at = s.v.Source(s.e.plan.Steps[i].Source)
	default:
		return at, false, nil
	}
	switch at.Kind {
	case machine.Nothing, machine.Empty, machine.Results: // null or a list
		return at, true, nil
	}
	fits, err := s.v.Fits(at, jobhost.MaxStepData)
	return at, !fits, err
}
