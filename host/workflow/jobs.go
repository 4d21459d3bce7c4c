package workflow

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/workflow/course"
)

// Settled implements [queue.Workflows].
func (e *Engine) Settled(job *queue.JobSpec, op *queue.Settle) queue.Transition {
	mark, ok := readMark(job.Origin.Mark)
	lost := job.Origin.Mark == ""
	if !ok && !lost || op.Status == queue.Open && (op.Failure == nil || mark.Purpose != 0) {
		return nil
	}
	return &transition{engine: e, at: op.EndedAt, first: func(t *transition, tx queue.WorkflowTx, end queue.End) (*happening, error) {
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
func (t *transition) readID(tx queue.WorkflowTx, job *queue.JobSpec) (mark course.Timer, ok bool, err error) {
	r, err := t.row(tx, job.Origin.Workflow)
	if r == nil || err != nil {
		return mark, false, err
	}
	mark, ok = r.def.course.Read(r.ID, job.ID)
	return mark, ok, nil
}

// settled converts the end of an attempt to the workflow's event; nil = none.
func settled(t *transition, tx queue.WorkflowTx, job *queue.JobSpec, op *queue.Settle, mark course.Timer, end queue.End) (*happening, error) {
	h := &happening{key: job.Origin.Workflow, since: job.CreatedAt, event: course.Event{At: t.at.Time(), Run: mark.Run}}
	switch {
	case op.Status == queue.Open:
		h.event.What, h.event.Failure = course.JobRetrying, op.Failure
		return h, nil
	case !end.Job:
		return nil, nil
	case mark.Purpose != 0:
		return due(h, mark), nil
	}
	if op.Status == queue.Succeeded && job.Tasks == 1 && op.ResultRef == "" {
		h.event.Output = op.Result
		if h.event.Output == nil {
			h.event.Output = []byte{}
		}
	}
	if op.Status == queue.Dead {
		h.event.Failure = op.Failure
	}
	return h, ended(h, tx, job.ID, end)
}

// due converts the end of a timer's job to the event of the timer.
func due(h *happening, timer course.Timer) *happening {
	h.event.What, h.event.Timer, h.event.Run, h.since = course.TimerDue, timer, course.Run{Step: course.None}, 0
	return h
}

// ended converts the end of a step's job to an event.
func ended(h *happening, view queue.WorkflowView, id string, end queue.End) (err error) {
	switch {
	case end.Final[queue.Dead] > 0:
		h.event.What = course.JobDead
		if h.event.Failure == nil {
			h.event.Failure, err = view.JobFailure(id)
		}
	case end.Final[queue.Cancelled] > 0:
		h.event.What = course.JobCancelled
	default:
		h.event.What = course.JobSucceeded
	}
	return err
}

// Cancelled implements [queue.Workflows]. If the job of a timer is cancelled, the timer is due: otherwise the
// workflow would wait forever.
func (e *Engine) Cancelled(job *queue.JobSpec, at queue.Millis) queue.Transition {
	mark, ok := readMark(job.Origin.Mark)
	if !ok {
		return nil
	}
	return &transition{engine: e, at: at, first: func(t *transition, tx queue.WorkflowTx, end queue.End) (*happening, error) {
		if !end.Job {
			return nil, nil
		}
		h := &happening{key: job.Origin.Workflow, since: job.CreatedAt, event: course.Event{At: t.at.Time(), Run: mark.Run}}
		if mark.Purpose != 0 {
			return due(h, mark), nil
		}
		return h, ended(h, tx, job.ID, end)
	}}
}

// Revived implements [queue.Workflows].
func (e *Engine) Revived(job *queue.JobSpec, at queue.Millis) queue.Transition {
	mark, ok := readMark(job.Origin.Mark)
	if !ok || mark.Purpose != 0 {
		return nil
	}
	return &transition{engine: e, at: at, first: func(t *transition, _ queue.WorkflowTx, _ queue.End) (*happening, error) {
		return &happening{key: job.Origin.Workflow, event: course.Event{What: course.JobRevived, At: t.at.Time(), Run: mark.Run}}, nil
	}}
}

// reasonCancelled is the reason shown if none was given.
const reasonCancelled = "it was cancelled on request"

func notFound(id string) *jobhost.Error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no workflow " + id}
}
