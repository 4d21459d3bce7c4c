package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/expr"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// MaxItems bounds the total size of a fan-out's payloads, in bytes: they are written
// in one transaction.
const MaxItems = 8 << 20

const contentJSON = "application/json"

// evaluator runs the expressions of a plan for its course. The course identifies
// steps by their index in the definition.
//
// Expressions run within a transaction and have a bounded cost, so they are not
// cancelled.
type evaluator struct {
	plan *Plan
	at   []int32 // index in the plan, by index in the definition
}

func (e *evaluator) step(source int) *Step { return &e.plan.Steps[e.at[source]] }

// When implements [machine.Evaluator].
func (e *evaluator) When(step int, v *machine.View) (holds bool, err error) {
	defer contain(&err)
	return e.condition(e.step(step).When, v, machine.Source{})
}

// Terminate implements [machine.Evaluator].
func (e *evaluator) Terminate(step int, v *machine.View) (ends bool, err error) {
	defer contain(&err)
	return e.condition(e.step(step).Terminate, v, v.Source(step))
}

func (e *evaluator) condition(p *expr.Program, v *machine.View, output machine.Source) (bool, error) {
	if p == nil {
		return false, errors.New("there is no condition")
	}
	s := scene{e: e, v: v}
	d, err := s.data(p)
	if err != nil {
		return false, err
	}
	if p.Uses("output") {
		if d.Output, err = s.read(output, "the output of the step"); err != nil {
			return false, err
		}
		if output.Kind == machine.Nothing { // that of a wait
			d.Output = []byte("null")
		}
	}
	return p.Bool(context.Background(), d)
}

// Input implements [machine.Evaluator].
func (e *evaluator) Input(step int, v *machine.View) (payload machine.Payload, err error) {
	defer contain(&err)
	p := e.step(step).Input
	if p == nil {
		return machine.Payload{}, errors.New("there is no input")
	}
	s := scene{e: e, v: v}
	if at, ok, err := s.passed(p); ok || err != nil {
		return passOn(at), err
	}
	d, err := s.data(p)
	if err != nil {
		return machine.Payload{}, err
	}
	data, asJSON, err := p.Payload(context.Background(), d)
	if asJSON {
		payload.ContentType = contentJSON
	}
	payload.Data = data
	return payload, err
}

// Output implements [machine.Evaluator].
func (e *evaluator) Output(v *machine.View) (payload machine.Payload, err error) {
	defer contain(&err)
	p := e.plan.Output
	if p == nil {
		return machine.Payload{}, errors.New("there is no output")
	}
	s := scene{e: e, v: v}
	if at, ok, err := s.passed(p); ok || err != nil {
		return passOn(at), err
	}
	d, err := s.data(p)
	if err != nil {
		return machine.Payload{}, err
	}
	data, err := p.JSON(context.Background(), d)
	return machine.Payload{Data: data, ContentType: contentJSON}, err
}

// FanOut implements [machine.Evaluator].
func (e *evaluator) FanOut(step int, v *machine.View) (items [][]byte, err error) {
	defer contain(&err)
	s := e.step(step)
	for s.FanOut == nil { // a fallback may use the fan-out of the step that it replaces
		if s.FallbackOf < 0 {
			return nil, errors.New("there is no fan_out")
		}
		s = &e.plan.Steps[s.FallbackOf]
	}
	view := scene{e: e, v: v}
	d, err := view.data(s.FanOut, s.Input)
	if err != nil {
		return nil, err
	}
	list, err := s.FanOut.List(context.Background(), d)
	if err != nil {
		return nil, err
	}
	items = make([][]byte, len(list))
	total := 0
	for i, element := range list {
		if items[i], err = payloadOf(s.Input, d, i, element); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		if total += len(items[i]); total > MaxItems {
			return nil, &jobhost.Error{
				Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the payloads of the elements are longer than %d bytes together", MaxItems),
				Hint: "pass on where the data are instead, or split the list",
			}
		}
	}
	return items, nil
}

// payloadOf returns the payload of the task for an element.
func payloadOf(input *expr.Program, d *expr.Data, i int, element []byte) ([]byte, error) {
	if input == nil {
		data, _ := expr.AsPayload(element)
		return data, nil
	}
	d.SetItem(i, element)
	data, _, err := input.Payload(context.Background(), d)
	return data, err
}

// contain turns a panic into an error, so that a fault in the expression library
// ends the step and not the host.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = &jobhost.Error{Code: jobhost.CodeInternal, Message: "internal: the expression could not be run", Cause: fmt.Errorf("panic: %v", r)}
	}
}

func passOn(at machine.Source) machine.Payload {
	return machine.Payload{From: []machine.Part{{Source: at}}}
}
