package workflow

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Settled implements [queue.Workflows].
func (e *Engine) Settled(job *record.JobSpec, op *record.Settle) record.Transition {
	mark, ok := readMark(job.Origin.Mark)
	lost := job.Origin.Mark == ""
	if !ok && !lost || op.Status == record.Open && (op.Failure == nil || mark.Purpose != 0) {
		return nil
	}
	return &transition{engine: e, at: op.EndedAt, aim: job.Origin.Workflow, first: func(t *transition, tx record.WorkflowTx, end record.End) (*happening, error) {
		mark := mark
		if lost {
			var err error
			if mark, ok, err = t.readID(tx, job); !ok || err != nil {
				return nil, err
			}
		}
		return settled(t, tx, job, op, mark, end)
	}}
}

// readID derives what a job is for from its id, if its mark is lost.
func (t *transition) readID(tx record.WorkflowTx, job *record.JobSpec) (mark machine.Timer, ok bool, err error) {
	r, err := t.row(tx, job.Origin.Workflow)
	if r == nil || err != nil {
		return mark, false, err
	}
	mark, ok = r.def.machine.Read(r.ID, job.ID)
	return mark, ok, nil
}

// settled converts the end of an attempt to the workflow's event; nil = none.
func settled(t *transition, tx record.WorkflowTx, job *record.JobSpec, op *record.Settle, mark machine.Timer, end record.End) (*happening, error) {
	h := &happening{key: job.Origin.Workflow, since: job.CreatedAt, event: machine.Event{At: t.at.Time(), Run: mark.Run}}
	switch {
	case op.Status == record.Open:
		h.event.What, h.event.Failure = machine.JobRetrying, op.Failure
		return h, nil
	case !end.Job:
		return nil, nil
	case mark.Purpose != 0:
		return due(h, mark), nil
	}
	if op.Status == record.Succeeded && job.Tasks == 1 && op.ResultRef == "" {
		h.event.Output = op.Result
		if h.event.Output == nil {
			h.event.Output = []byte{}
		}
	}
	if op.Status == record.Dead {
		h.event.Failure = op.Failure
	}
	return h, ended(h, tx, job.ID, end)
}

// due converts the end of a timer's job to the event of the timer.
func due(h *happening, timer machine.Timer) *happening {
	h.event.What, h.event.Timer, h.event.Run, h.since = machine.TimerDue, timer, machine.Run{Step: machine.None}, 0
	return h
}

// ended converts the end of a step's job to an event.
func ended(h *happening, view record.WorkflowView, id string, end record.End) (err error) {
	switch {
	case end.Final[record.Dead] > 0:
		h.event.What = machine.JobDead
		if h.event.Failure == nil {
			h.event.Failure, err = view.JobFailure(id)
		}
	case end.Final[record.Cancelled] > 0:
		h.event.What = machine.JobCancelled
	default:
		h.event.What = machine.JobSucceeded
	}
	return err
}

// Cancelled implements [queue.Workflows]. If the job of a timer is cancelled, the timer is due: otherwise the
// workflow would wait forever.
func (e *Engine) Cancelled(job *record.JobSpec, at record.Millis) record.Transition {
	mark, ok := readMark(job.Origin.Mark)
	if !ok {
		return nil
	}
	return &transition{engine: e, at: at, aim: job.Origin.Workflow, first: func(t *transition, tx record.WorkflowTx, end record.End) (*happening, error) {
		if !end.Job {
			return nil, nil
		}
		h := &happening{key: job.Origin.Workflow, since: job.CreatedAt, event: machine.Event{At: t.at.Time(), Run: mark.Run}}
		if mark.Purpose != 0 {
			return due(h, mark), nil
		}
		return h, ended(h, tx, job.ID, end)
	}}
}

// Revived implements [queue.Workflows].
func (e *Engine) Revived(job *record.JobSpec, at record.Millis) record.Transition {
	mark, ok := readMark(job.Origin.Mark)
	if !ok || mark.Purpose != 0 {
		return nil
	}
	return &transition{engine: e, at: at, aim: job.Origin.Workflow, first: func(t *transition, _ record.WorkflowTx, _ record.End) (*happening, error) {
		return &happening{key: job.Origin.Workflow, event: machine.Event{What: machine.JobRevived, At: t.at.Time(), Run: mark.Run}}, nil
	}}
}

// reasonCancelled is the reason shown if none was given.
const reasonCancelled = "it was cancelled on request"

func notFound(id string) *jobhost.Error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no workflow " + id}
}
