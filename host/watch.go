package host

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
)

// errStopped ends subscriptions and scopes when the host stops.
var errStopped = &jobhost.Error{
	Code:    jobhost.CodeUnavailable,
	Message: "the host has stopped",
	Hint:    "jobs that were acknowledged go on when it is back",
}

// publish sends an event to its subscribers.
func (h *Host) publish(e jobhost.Event) {
	if e.Kind == jobhost.EventEnded {
		h.jobEnded(e.Job)
	}
	h.cfg.OnEvent(e)
	if h.states != nil {
		h.states.Published(&e)
	}
	h.hub.PublishFunc(keyOf(&e), func(seq uint64) jobhost.Event {
		e.Seq = seq
		return e
	}, keyOfWorkflow(e.Workflow), keyOfWorker(e.Worker))
}

// keyOf is the key by which subscribers find an event: its job, or its workflow.
func keyOf(e *jobhost.Event) string {
	switch e.Kind {
	case jobhost.EventWorkflowStarted, jobhost.EventStep, jobhost.EventWorkflowResumed, jobhost.EventWorkflowEnded:
		return e.Workflow
	default:
		return e.Job
	}
}

// keyOfWorkflow is the key of all events of a workflow and its jobs. No job has a slash in
// its id.
func keyOfWorkflow(id string) string { return prefixed("workflow/", id) }

// keyOfWorker is the key of all events of a worker.
func keyOfWorker(name string) string { return prefixed("worker/", name) }

func prefixed(prefix, name string) string {
	if name == "" {
		return ""
	}
	return prefix + name
}

// Wait implements [jobhost.Watcher].
func (r *running) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	if err := jobhost.CheckID(id); err != nil {
		return jobhost.Job{}, err
	}
	for {
		job, err := r.waitOnce(ctx, id)
		// A job that says more than a reader can take is looked at again.
		if !errors.Is(err, hub.ErrSlow) {
			return job, err
		}
	}
}

func (r *running) waitOnce(ctx context.Context, id string) (jobhost.Job, error) {
	// Subscribed before the job is looked at, so that its end is not missed.
	events := r.host.hub.Subscribe(hub.Query{Key: id})
	defer events.Close()
	for {
		job, err := r.Job(ctx, id)
		if err != nil || job.State.Ended() {
			return job, err
		}
		if err := awaitEnd(ctx, events); err != nil {
			return job, err
		}
	}
}

// awaitEnd returns when the job has ended, as far as the events tell.
func awaitEnd(ctx context.Context, events *hub.Subscription[jobhost.Event]) error {
	for {
		item, err := events.Next(ctx)
		if err != nil {
			return err
		}
		if item.Value.Kind == jobhost.EventEnded {
			return nil
		}
	}
}

// Events implements [jobhost.Watcher].
func (r *running) Events(ctx context.Context, query jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	return func(yield func(jobhost.Event, error) bool) {
		// The narrowest key that is asked for, so that others' events don't fill its buffer.
		key := cmp.Or(query.Job, keyOfWorkflow(query.Workflow), keyOfWorker(query.Worker))
		events := r.host.hub.Subscribe(hub.Query{Key: key, After: query.After, Replay: query.After > 0})
		defer events.Close()
		for {
			item, err := events.Next(ctx)
			if errors.Is(err, hub.ErrGap) {
				continue // a hole in the numbers; what is remembered follows
			}
			if err != nil {
				yield(jobhost.Event{Time: time.Now()}, err)
				return
			}
			if !query.Selects(&item.Value) {
				continue
			}
			if !yield(item.Value, nil) {
				return
			}
		}
	}
}
