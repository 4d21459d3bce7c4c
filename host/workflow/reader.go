package workflow

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Slots of workflow data that are not used by signals.
const (
	inputSlot  = -1
	outputSlot = -2
)

// maxComposed bounds the data composed from outputs within a transaction, in bytes. A single output in a
// payload store is passed on by reference, whatever its size.
const maxComposed = 8 << 20

// reader reads a workflow's data from the store. It implements [machine.Reader].
type reader struct {
	view  record.WorkflowView
	row   *row
	event *machine.Event // the current event; nil = none
}

// Labels returns the labels of the workflow, for expressions.
func (r *reader) Labels() map[string]string { return r.row.Labels }

// Failure implements [machine.Reader].
func (r *reader) Failure(step int) (*jobhost.Failure, error) {
	return r.view.StepFailure(r.row.Key, step)
}

// Read implements [machine.Reader].
func (r *reader) Read(s machine.Source) ([]byte, error) {
	c, err := r.find(s)
	if err != nil {
		return nil, err
	}
	if c.ref != "" {
		return nil, fmt.Errorf("%w: %w", machine.ErrTooLarge, elsewhere(r.row.def.name(s.Run.Step)))
	}
	return c.data, nil
}

// Size implements [machine.Sizer]. The size of a list is that of its elements together. Data in a payload
// store is too large for expressions, whatever its size: it can only be passed on.
func (r *reader) Size(s machine.Source) (int64, error) {
	size, ref, err := r.size(s)
	if err == nil && ref != "" {
		err = fmt.Errorf("%w: %w", machine.ErrTooLarge, elsewhere(r.row.def.name(s.Run.Step)))
	}
	return size, err
}

// size returns the size of a source, without reading it if possible, and the name of its object.
func (r *reader) size(s machine.Source) (size int64, ref string, err error) {
	switch {
	case s.Kind == machine.Output:
		w, err := r.view.WorkflowByID(r.row.def.machine.ChildID(r.row.ID, s.Run))
		if w == nil || err != nil {
			return 0, "", err
		}
		return w.Ending.OutputSize, w.Ending.OutputRef, nil
	case s.Kind != machine.Result && s.Kind != machine.Results || r.atHand(s) != nil:
		c, err := r.find(s)
		return c.size, c.ref, err
	}
	out, err := r.view.JobOutput(r.row.def.machine.ID(r.row.ID, s.Run), 0)
	if out == nil || err != nil {
		return 0, "", err
	}
	return out.Size, out.Ref, nil
}

// atHand returns the result that came with the event, if the source is that.
func (r *reader) atHand(s machine.Source) []byte {
	if r.event == nil || r.event.Run != s.Run || r.event.What != machine.JobSucceeded || s.Kind != machine.Result {
		return nil
	}
	return r.event.Output
}

// content is data, or the name of the object that contains it.
type content struct {
	data []byte
	ref  string
	size int64
}

func inline(data []byte) content { return content{data: data, size: int64(len(data))} }

// find returns the content of a source. Errors are those of the store, or wrap [machine.ErrUnreadable].
func (r *reader) find(s machine.Source) (content, error) {
	switch s.Kind {
	case machine.Nothing:
		return inline([]byte("null")), nil
	case machine.Empty:
		return inline([]byte("[]")), nil
	case machine.Input:
		return r.data(r.row.Key, inputSlot)
	case machine.Kept:
		return r.data(r.row.Key, s.Slot)
	case machine.Output:
		return r.child(s.Run)
	}
	if data := r.atHand(s); data != nil {
		return inline(data), nil
	}
	id := r.row.def.machine.ID(r.row.ID, s.Run)
	out, err := r.view.JobOutput(id, maxComposed)
	switch {
	case err != nil:
		return content{}, unreadable(err)
	case out == nil:
		return content{}, fmt.Errorf("%w: job %s is gone", machine.ErrUnreadable, id)
	case out.Ref != "" && s.Kind == machine.Result:
		return content{ref: out.Ref, size: out.Size}, nil
	case out.Ref != "":
		return content{}, fmt.Errorf("%w: %w", machine.ErrTooLarge, elsewhere(r.row.def.name(s.Run.Step)))
	case !out.Whole():
		return content{}, fmt.Errorf("%w: %w", machine.ErrTooLarge, tooLarge("the output of step "+r.row.def.name(s.Run.Step), out.Size))
	case s.Kind == machine.Result:
		return inline(out.Results[0]), nil
	}
	return inline(machine.List(out.Results)), nil
}

func (r *reader) data(key record.Key, slot int) (content, error) {
	data, err := r.view.WorkflowData(key, slot)
	if err == nil && data == nil {
		err = fmt.Errorf("%w: it is gone", machine.ErrUnreadable)
	}
	return inline(data), unreadable(err)
}

// unreadable turns damage to a step's input into a failure of that step.
func unreadable(err error) error {
	if jobhost.CodeOf(err) != jobhost.CodeDamaged {
		return err
	}
	return fmt.Errorf("%w: %w", machine.ErrUnreadable, err)
}

// child returns the output of a run's workflow.
func (r *reader) child(run machine.Run) (content, error) {
	if r.event != nil && r.event.Run == run && r.event.What == machine.ChildEnded && r.event.Output != nil {
		return inline(r.event.Output), nil
	}
	id := r.row.def.machine.ChildID(r.row.ID, run)
	w, err := r.view.WorkflowByID(id)
	switch {
	case err != nil:
		return content{}, unreadable(err)
	case w == nil:
		return content{}, fmt.Errorf("%w: workflow %s is gone", machine.ErrUnreadable, id)
	case w.Ending.OutputRef != "":
		return content{ref: w.Ending.OutputRef, size: w.Ending.OutputSize}, nil
	}
	return r.data(w.Key, outputSlot)
}

// compose returns a payload. Errors are those of the store, or a [jobhost.Error] that says why it isn't
// available.
func (r *reader) compose(p *machine.Payload) (content, error) {
	if len(p.From) == 1 && p.From[0].Name == "" {
		c, err := r.find(p.From[0].Source)
		return c, forPeople(err)
	}
	total := int64(0)
	data, err := p.Compose(func(s machine.Source) ([]byte, error) {
		c, err := r.find(s)
		if err == nil && c.ref != "" {
			err = fmt.Errorf("%w: %w", machine.ErrTooLarge, elsewhere(r.row.def.name(s.Run.Step)))
		}
		if total += c.size; err == nil && total > maxComposed {
			err = fmt.Errorf("%w: %w", machine.ErrTooLarge, tooLarge("an input that is put together from several outputs", total))
		}
		return c.data, err
	})
	return inline(data), forPeople(err)
}
