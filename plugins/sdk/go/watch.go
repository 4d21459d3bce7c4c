package jobhost

import (
	"errors"
	"strconv"
	"time"
)

// StateEvent is an event of a [StateWatch].
type StateEvent struct {
	// State is one that existed when the watch began, with Replay, or a change.
	State  State
	Replay bool
	// Sentinel means that all existing states have been reported; there is no State.
	Sentinel bool
}

// StateWatch reports states: first the existing ones, oldest first, then the
// sentinel, and then each change. It may be waited for with [Job.Wait].
type StateWatch struct{ op }

// WatchState starts to watch states. An attempt may have 64 watches, including
// its inbox; drop those no longer needed. Errors are those of [Job.GetState],
// and [ErrLimit].
//
//	watch, err := job.WatchState(jobhost.WithJob(id), jobhost.WithTag("_run"))
func (j *Job) WatchState(opts ...StateOption) (*StateWatch, error) {
	task, tag := stateQueryOf(opts)
	return j.watchState(task, tag)
}

func (j *Job) watchState(task int32, tag string) (*StateWatch, error) {
	n := j.host.StateWatch(task, tag)
	if n < 0 {
		return nil, failed("watch state "+tag, Errno(n))
	}
	return &StateWatch{j.op("", n)}, nil
}

// Next waits for the next event. Errors: [ErrClosed] when there will be no more,
// as when the job was deleted; [ErrLimit] when 256 changes were left unread: start
// a new watch; and those of [Job.Wait].
func (w *StateWatch) Next() (StateEvent, error) {
	const what = "watch states"
	message, err := w.next(what)
	if err != nil {
		return StateEvent{}, err
	}
	r := jsonReader{rest: message}
	event := r.event()
	if !r.ended() {
		return StateEvent{}, failed(what, ErrIO)
	}
	return event, nil
}

// Drop ends the watch.
func (w *StateWatch) Drop() { w.drop() }

// ErrTimeout is the error of a [Job.Synchronize] that timed out.
var ErrTimeout = errors.New("not in time")

// Synchronize waits at a barrier: until every task of the job has reported at least
// the status target under a tag. It then returns the lowest state. A task that has
// reported nothing is not started, and errors, below zero, are below that. While it
// waits it uses no CPU, but its slot: a worker whose tasks wait for each other
// needs one for each.
//
//	err := job.SetState("loaded", 1, "", nil)
//	…
//	_, err = job.Synchronize("loaded", 1, time.Minute)
//
// "JOB/TAG" waits for the tasks of another job, if the manifest lets this worker
// watch those of that job's worker.
//
// Errors: [ErrTimeout], a [Failure] of category [Timeout] that comes with the lowest
// state; [ErrClosed] when the states were deleted; those of [Job.WatchState] and
// [Job.Wait].
func (j *Job) Synchronize(tag string, target int32, timeout time.Duration) (lowest State, err error) {
	watch, err := j.watchState(allTasks, tag)
	if err != nil {
		return State{}, err
	}
	defer func() { watch.Drop() }()
	pending := []Pending{watch}
	if timeout != Forever {
		late := j.After(timeout)
		defer late.Drop()
		pending = append(pending, late)
	}
	for {
		// Queried after the watch has begun, so that no change is missed.
		if lowest, err = j.getState(allTasks, tag); err != nil || lowest.Status >= target {
			return lowest, err
		}
		i, err := j.Wait(Forever, pending...)
		if err != nil {
			return lowest, err
		}
		if i == 1 {
			return lowest, tooLate(tag, &lowest)
		}
		switch _, err = watch.Next(); {
		case errors.Is(err, ErrLimit): // more changes than it holds: the next one begins with the current states
			watch.Drop()
			if watch, err = j.watchState(allTasks, tag); err != nil {
				return lowest, err
			}
			pending[0] = watch
		case err != nil:
			return lowest, err
		}
	}
}

// tooLate says which task has not reached the barrier.
func tooLate(tag string, lowest *State) error {
	text := "synchronize " + tag + ": task " + strconv.Itoa(lowest.Task) + " is at " + strconv.Itoa(int(lowest.Status))
	if lowest.Message != "" {
		text += " (" + lowest.Message + ")"
	}
	return &Failure{Err: &lateError{text}, Code: "timeout", Category: Timeout}
}

type lateError struct{ text string }

func (e *lateError) Error() string { return e.text + ": " + ErrTimeout.Error() }
func (e *lateError) Unwrap() error { return ErrTimeout }
