package machine

import (
	"errors"
	"fmt"
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
	// FanOut returns the payloads of the tasks, at most [jobhost.MaxFanOut]. A fallback
	// without an expression for it has those of the step that it stands in for.
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
	// Read returns what is at a place other than Nothing and Empty. It may refuse what is
	// larger than [jobhost.MaxStepData] with [ErrTooLarge], and with it lists for a fan-out.
	Read(Source) ([]byte, error)
	// Failure returns that of the last [Change] of a step that had one.
	Failure(step int) (*jobhost.Failure, error)
}

// Labeler is a [Reader] that knows the labels of the workflow: those of its start
// over those of its definition. Without it there are none.
type Labeler interface {
	Labels() map[string]string
}

// Sizer is a [Reader] that knows how large data are without reading them. Without it
// they are read. Its errors are as those of Read.
type Sizer interface {
	Size(Source) (int64, error)
}

// Errors of data that will never be readable.
var (
	// ErrUnreadable is for what is gone, or too large.
	ErrUnreadable = errors.New("unreadable")
	// ErrTooLarge is an [ErrUnreadable] of data that are there. They can be passed on as they are.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrUnreadable)
)

// View is what expressions see of a workflow. It is valid during the call.
type View struct{ t *turn }

// ID returns the workflow's id.
func (v *View) ID() string { return v.t.id }

// Started returns when the workflow began.
func (v *View) Started() time.Time { return time.UnixMilli(v.t.rec.started).UTC() }

// Labels returns the workflow's labels, which are not to be changed.
func (v *View) Labels() map[string]string {
	if l, ok := v.t.reader.(Labeler); ok {
		return l.Labels()
	}
	return nil
}

// Status returns where a step stands.
func (v *View) Status(step int) jobhost.StepStatus { return v.t.rec.status[step].told() }

// Input returns the workflow's input.
func (v *View) Input() ([]byte, error) { return v.Read(Source{Kind: Input}) }

// Output returns a step's output; nil unless it is completed.
func (v *View) Output(step int) ([]byte, error) { return v.Read(v.t.source(step)) }

// Source returns where a step's output is; Nothing unless it is completed.
func (v *View) Source(step int) Source { return v.t.source(step) }

// Fits reports whether data are at most so many bytes long. They are not read if the
// Reader is a [Sizer].
func (v *View) Fits(s Source, most int) (bool, error) {
	sizer, ok := v.t.reader.(Sizer)
	if !ok || s.Kind == Nothing || s.Kind == Empty || v.t.at == s {
		data, err := v.Read(s)
		if errors.Is(err, ErrTooLarge) {
			return false, nil
		}
		return len(data) <= most, err
	}
	size, err := sizer.Size(s)
	if errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	return err == nil && size <= int64(most), v.note(err)
}

// Failure returns why a step has failed; nil if it has not.
func (v *View) Failure(step int) (*jobhost.Failure, error) {
	f, err := v.t.failure(step)
	return f, v.note(err)
}

// Memo is where an Evaluator keeps what it will look at again before the Advance ends, such as data
// that it has decoded. What is at a [Source] never changes.
func (v *View) Memo() map[Source]any {
	if v.t.memo == nil {
		v.t.memo = map[Source]any{}
	}
	return v.t.memo
}

// Read returns what is at a place; nil for Nothing.
func (v *View) Read(s Source) ([]byte, error) {
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
