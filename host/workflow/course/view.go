package course

import (
	"errors"
	"time"

	"github.com/jobhost/jobhost"
)

// Evaluator evaluates the expressions of a definition. It is asked only for
// those that the graph says are there. Its answers follow from the view
// alone: no clock, no randomness. Its errors are for people, and fail the step.
type Evaluator interface {
	When(step int, v *View) (bool, error)
	// Input returns the payload of a job or a workflow.
	Input(step int, v *View) (Payload, error)
	// FanOut returns the payloads of the tasks, at most [jobhost.MaxFanOut].
	FanOut(step int, v *View) ([][]byte, error)
	// Terminate is asked after success, when the step's output is there.
	Terminate(step int, v *View) (bool, error)
	// Output returns what the workflow returns.
	Output(v *View) (Payload, error)
}

// Reader reads what the store has of the workflow beside its record, as the
// transaction sees it. An error that wraps [ErrUnreadable] is for the evaluator;
// any other ends the Advance, which comes to nothing.
type Reader interface {
	// Read returns what is at a place other than Nothing and Empty.
	Read(Source) ([]byte, error)
	// Failure returns that of the last [Change] of a step that had one.
	Failure(step int) (*jobhost.Failure, error)
}

// ErrUnreadable is for what will never be readable: that is gone, or too large.
var ErrUnreadable = errors.New("unreadable")

// View is what expressions see of a workflow. It is valid during the call.
type View struct{ t *turn }

// ID returns the workflow's id.
func (v *View) ID() string { return v.t.id }

// Started returns when the workflow began.
func (v *View) Started() time.Time { return time.UnixMilli(v.t.rec.started).UTC() }

// Status returns where a step stands.
func (v *View) Status(step int) jobhost.StepStatus { return v.t.rec.status[step].told() }

// Input returns the workflow's input.
func (v *View) Input() ([]byte, error) { return v.read(Source{Kind: Input}) }

// Output returns a step's output; nil unless it is completed.
func (v *View) Output(step int) ([]byte, error) { return v.read(v.t.source(step)) }

// Failure returns why a step has failed; nil if it has not.
func (v *View) Failure(step int) (*jobhost.Failure, error) {
	f, err := v.t.failure(step)
	return f, v.note(err)
}

func (v *View) read(s Source) ([]byte, error) {
	switch {
	case s.Kind == Nothing:
		return nil, nil
	case s.Kind == Empty:
		return []byte("[]"), nil
	case v.t.at == s:
		return v.t.data, nil
	}
	data, err := v.t.reader.Read(s)
	return data, v.note(err)
}

// note remembers an error that is not the evaluator's affair, whatever that
// makes of it.
func (v *View) note(err error) error {
	if err != nil && !errors.Is(err, ErrUnreadable) && v.t.err == nil {
		v.t.err = err
	}
	return err
}

// failure returns why a step has failed, or its first choice.
func (t *turn) failure(step int) (*jobhost.Failure, error) {
	switch t.rec.status[step] {
	case failed, cancelled, falling, fallback:
	default:
		return nil, nil
	}
	for i := len(t.out.Changes) - 1; i >= 0; i-- {
		if c := &t.out.Changes[i]; c.Step == step && c.Failure != nil {
			return c.Failure, nil
		}
	}
	return t.reader.Failure(step)
}
