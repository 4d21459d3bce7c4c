package effect

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Submit submits a job: now, or when the attempt has succeeded. It returns the
// job's id. A job without an id gets one that is the same in every attempt of the
// task for the first, second, … job it submits. Errors: those of a submit, and
// exhausted when the job has too many children or ancestors.
func (a *Attempt) Submit(spec jobhost.Spec, now bool) (id string, err error) {
	defer func() { a.forget(err) }()
	if err := a.name(&spec); err != nil {
		return "", err
	}
	if now {
		return spec.ID, a.submitNow(spec)
	}
	return a.submitLater(spec, a.cfg.Queue.Child)
}

// SubmitOwn submits a job for one of the host's own workers when the attempt has
// succeeded. One more generation must be allowed below it.
func (a *Attempt) SubmitOwn(spec jobhost.Spec) (id string, err error) {
	defer func() { a.forget(err) }()
	if err := a.name(&spec); err != nil {
		return "", err
	}
	if a.parent.Depth+1 > jobhost.MaxDepth {
		return "", a.tooDeep()
	}
	return a.submitLater(spec, a.cfg.Queue.OwnChild)
}

// name gives a job without an id its id.
func (a *Attempt) name(spec *jobhost.Spec) error {
	a.numbers++
	if err := a.adopt(); err != nil {
		return err
	}
	if spec.ID == "" {
		spec.ID = queue.ChildID(a.cfg.Lease.Job, a.cfg.Lease.Index, a.numbers)
	}
	return nil
}

// forget takes back the number of a refused job, so that another attempt, which
// may find room, gives the jobs that follow the same ids. An id taken by another
// job stays taken.
func (a *Attempt) forget(err error) {
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeConflict {
		a.numbers--
	}
}

// submitLater reserves the job's place in the queue, which admit does, and adds
// it to the effects.
func (a *Attempt) submitLater(spec jobhost.Spec, admit func(context.Context, jobhost.Spec, *record.Parent) (*queue.Child, error)) (string, error) {
	if err := a.fits(0, len(spec.Payload)); err != nil {
		return "", err
	}
	spec.Payload = append([]byte(nil), spec.Payload...) // the guest keeps using its buffer
	ctx, done := a.context()
	defer done()
	child, err := admit(ctx, spec, a.parent)
	if err != nil {
		return "", a.refused(err)
	}
	if there, err := a.submitted(child.Job); there || err != nil {
		child.Release()
		return spec.ID, err
	}
	if a.room == 0 {
		child.Release()
		return "", a.over(LimitChildren, "a job may submit %d jobs", jobhost.MaxChildren)
	}
	a.room--
	a.dirty.bytes += len(spec.Payload)
	a.digests[child.Job.ID] = child.Job.Digest
	a.children = append(a.children, child)
	return spec.ID, nil
}

// submitNow makes a job durable. One that an earlier attempt of the task
// submitted exists already.
func (a *Attempt) submitNow(spec jobhost.Spec) error {
	if _, waits := a.digests[spec.ID]; waits {
		return record.TakenID(spec.ID)
	}
	spec.Payload = append([]byte(nil), spec.Payload...)
	ctx, done := a.context()
	defer done()
	receipt, err := a.cfg.Queue.SubmitChild(ctx, spec, a.parent)
	if err != nil {
		return a.refused(err)
	}
	if !receipt.Deduplicated {
		a.room = max(a.room-1, 0)
	}
	return nil
}

// adopt loads, once, what the job needs to become a parent.
func (a *Attempt) adopt() error {
	lease := a.cfg.Lease
	if a.parent == nil {
		ctx, done := a.context()
		defer done()
		family, err := a.cfg.Queue.Family(ctx, lease.Job.Key)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		a.parent = &record.Parent{ID: lease.Job.ID, Key: lease.Job.Key, Task: lease.Index, Depth: family.Depth + 1}
		a.room = max(jobhost.MaxChildren-family.Children, 0)
	}
	if a.parent.Depth > jobhost.MaxDepth {
		return a.tooDeep()
	}
	return nil
}

func (a *Attempt) tooDeep() error {
	return a.over(LimitChildren, "a job may have %d generations of parents", jobhost.MaxDepth)
}

// submitted reports whether the attempt has submitted the same job before.
// Errors: conflict if it has submitted a different one with that id.
func (a *Attempt) submitted(job *record.JobSpec) (bool, error) {
	digest, there := a.digests[job.ID]
	if there && digest != job.Digest {
		return false, record.TakenID(job.ID)
	}
	return there, nil
}

// refused counts a refusal caused by a limit.
func (a *Attempt) refused(err error) error {
	e, ok := errors.AsType[*jobhost.Error](err)
	switch {
	case !ok || e.Code != jobhost.CodeExhausted:
	case e.Field == "submit":
		a.cfg.Hit(LimitChildren)
	default:
		a.cfg.Hit(LimitQueue)
	}
	return err
}
