package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Data is the data for a run of expressions. What an expression doesn't refer to is not decoded, and
// may be left out; decoded values are kept for the next run, so the inputs of a fan-out share them.
// Data is for one goroutine at a time; fields must not be changed after the first run, except by
// [Data.SetItem].
//
// Payloads that are not JSON are text, or bytes if they are not UTF-8 either.
type Data struct {
	Input []byte
	// InputDecoded keeps the decoded input for other Data too; nil = it isn't kept.
	InputDecoded *Decoded
	// Steps returns the data of a step that has ended.
	Steps    func(name string) (StepData, error)
	Output   []byte // in terminate
	Workflow WorkflowData

	item    []byte
	index   int
	decoded map[string]any
	trouble error // why a value was not available
	spent   uint64
}

// StepData is a step that has ended.
type StepData struct {
	Status jobhost.StepStatus
	// Output is the step's output; nil = none, which expressions see as null.
	Output []byte
	// Decoded is like [Data.InputDecoded].
	Decoded *Decoded
	// Failure is set if the step has failed.
	Failure *jobhost.Failure
}

// Decoded keeps a decoded payload for several [Data]. It is initially empty, and for one goroutine at
// a time.
type Decoded struct {
	value any
	known bool
}

// Known reports whether it has a value: then the payload itself is not needed.
func (d *Decoded) Known() bool { return d != nil && d.known }

// decode returns the value of a payload.
func (d *Decoded) decode(what string, payload []byte) (any, error) {
	if d.Known() {
		return d.value, nil
	}
	v, err := value(what, payload)
	if d != nil && err == nil {
		d.value, d.known = v, true
	}
	return v, err
}

// WorkflowData describes the workflow to expressions.
type WorkflowData struct {
	ID, Name string
	Labels   map[string]string
	Started  time.Time
}

// SetItem sets item and index for the next runs.
func (d *Data) SetItem(index int, item []byte) {
	d.index, d.item = index, item
	delete(d.decoded, "item")
}

// activation provides CEL with Data. A value that isn't available ends the run.
type activation struct {
	data    *Data
	program *Program
}

// Parent implements [cel.Activation].
func (activation) Parent() cel.Activation { return nil }

// ResolveName implements [cel.Activation].
func (a activation) ResolveName(name string) (any, bool) {
	d := a.data
	if name == "steps" {
		steps, err := d.steps(a.program.steps)
		return d.orTrouble(steps, err), true
	}
	if v, ok := d.decoded[name]; ok {
		return v, true
	}
	var v any
	var err error
	switch name {
	case "input":
		v, err = d.InputDecoded.decode("the input of the workflow", d.Input)
	case "item":
		v, err = value("the element", d.item)
	case "output":
		v, err = value("the output of the step", d.Output)
	case "index":
		return int64(d.index), true
	case "workflow":
		labels := make(map[string]any, len(d.Workflow.Labels))
		for k, l := range d.Workflow.Labels {
			labels[k] = l
		}
		v = map[string]any{"id": d.Workflow.ID, "name": d.Workflow.Name, "labels": labels, "started": d.Workflow.Started.UTC()}
	default:
		return nil, false
	}
	d.keep(name, v, err)
	return d.orTrouble(v, err), true
}

func (d *Data) keep(name string, v any, err error) {
	if err != nil {
		return
	}
	if d.decoded == nil {
		d.decoded = map[string]any{}
	}
	d.decoded[name] = v
}

func (d *Data) orTrouble(v any, err error) any {
	if err != nil {
		d.trouble = err
		return types.WrapErr(err)
	}
	return v
}

// steps returns the steps with these names.
func (d *Data) steps(names []string) (map[string]any, error) {
	all := make(map[string]any, len(names))
	for _, name := range names {
		key := "steps." + name
		v, ok := d.decoded[key]
		if !ok {
			var err error
			if v, err = d.step(name); err != nil {
				return nil, err
			}
			d.keep(key, v, nil)
		}
		all[name] = v
	}
	return all, nil
}

func (d *Data) step(name string) (any, error) {
	if d.Steps == nil {
		return nil, errors.New("no step has ended yet")
	}
	s, err := d.Steps(name)
	if err != nil {
		return nil, fmt.Errorf("read step %s: %w", name, err)
	}
	var output any
	if s.Output != nil || s.Decoded.Known() {
		if output, err = s.Decoded.decode(fmt.Sprintf("the output of step %s", text.Quote(name, text.Short)), s.Output); err != nil {
			return nil, err
		}
	}
	var failure any
	if s.Failure != nil {
		if failure, err = failureValue(s.Failure); err != nil {
			return nil, err
		}
	}
	return map[string]any{"status": string(s.Status), "output": output, "error": failure}, nil
}

// failureValue omits what is of no use in conditions: times, stack and context.
func failureValue(f *jobhost.Failure) (any, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("read the error of a step: %w", err)
	}
	v, _, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("read the error of a step: %w", err)
	}
	all, _ := v.(map[string]any)
	for _, name := range []string{"context", "stack", "started_at", "ended_at"} {
		delete(all, name)
	}
	return all, nil
}

// value decodes a payload. what is its name in errors.
func value(what string, payload []byte) (any, error) {
	if len(payload) > jobhost.MaxStepData {
		return nil, tooLarge("keep what expressions need small, and pass large data from step to step without them",
			"%s is %d bytes long; expressions look at up to %d", what, len(payload), jobhost.MaxStepData)
	}
	v, isJSON, err := decode(payload)
	switch {
	case err != nil:
		return nil, jobhost.Invalid("", "", "%s is not possible here: %v", what, err)
	case isJSON:
		return v, nil
	case utf8.Valid(payload):
		return string(payload), nil
	}
	return payload, nil
}
