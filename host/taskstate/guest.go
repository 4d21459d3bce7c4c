package taskstate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
)

// Guest is one task's access to states: it sets its own, and sees those of its job and
// of other jobs. It is used by one goroutine.
type Guest struct {
	keeper  *Keeper
	job     state.Job
	task    int
	tasks   int
	board   *state.Board // of its job; nil = not opened yet
	manager *state.Manager
	release func()
	watched int // bytes of the states its watches began with
}

// maxWatched bounds the states that a guest's watches began with, in bytes; a single
// watch is always allowed. Later changes have their own bounds.
const maxWatched = 64 << 20

// Guest returns the access of a job's task. Nothing is opened until it is used.
func (k *Keeper) Guest(job state.Job, task, tasks int) *Guest {
	return &Guest{keeper: k, job: job, task: task, tasks: tasks}
}

// own opens the board of the guest's job. A board that has ended, because the store was
// unavailable for too long, is opened again. Only for tasks of the queue does a deleted
// board stay closed, since their job is gone; a fiber, which is not a job, starts over.
func (g *Guest) own(ctx context.Context) error {
	if g.board != nil {
		ended := g.board.Err()
		if ended == nil || g.job.Run == "" && errors.Is(ended, state.ErrDeleted) {
			return nil
		}
		g.Close()
	}
	board, release, err := g.keeper.board(ctx, g.job, g.tasks)
	if err != nil {
		return err
	}
	manager, err := state.NewManager(board, g.task)
	if err != nil {
		release()
		return err
	}
	g.board, g.manager, g.release = board, manager, release
	return nil
}

// Set makes a state of the task durable.
func (g *Guest) Set(ctx context.Context, s jobhost.TaskState) error {
	began := time.Now()
	if err := g.own(ctx); err != nil {
		g.keeper.unwritten(time.Since(began), err)
		return err
	}
	return g.manager.SetState(ctx, s)
}

// State returns the lowest of the states asked for, by status, task and tag.
func (g *Guest) State(ctx context.Context, q hostcall.StateQuery) (jobhost.TaskState, error) {
	board, release, err := g.boardOf(ctx, q.Job)
	if err != nil {
		return jobhost.TaskState{}, err
	}
	defer release()
	return board.Get(queryOfGuest(q))
}

// Watch returns a stream of the states asked for, until it is dropped.
func (g *Guest) Watch(ctx context.Context, q hostcall.StateQuery) (hostcall.Stream, error) {
	board, release, err := g.boardOf(ctx, q.Job)
	if err != nil {
		return nil, err
	}
	w := &watch{guest: g, release: release}
	stream := pending.NewStream(w)
	// It ends when it is dropped, not with the call.
	if w.sub, err = board.Subscribe(context.WithoutCancel(ctx), queryOfGuest(q), stream.Ring); err != nil {
		release()
		return nil, err
	}
	w.weight = w.sub.Weight()
	if g.watched > 0 && g.watched+w.weight > maxWatched {
		w.sub.Close()
		release()
		return nil, errWatched
	}
	g.watched += w.weight
	return stream, nil
}

var errWatched error = &jobhost.Error{
	Code: jobhost.CodeExhausted, Message: "the watches of this guest hold too many states: together 64 MiB", Hint: "drop some, or watch one tag or task",
}

// boardOf returns the board of the guest's own job, or of another job.
func (g *Guest) boardOf(ctx context.Context, job string) (*state.Board, func(), error) {
	if job != "" {
		return g.keeper.board(ctx, state.Job{ID: job}, 0)
	}
	if err := g.own(ctx); err != nil {
		return nil, nil, err
	}
	return g.board, func() {}, nil
}

// Close releases everything except the streams, which are dropped separately.
func (g *Guest) Close() {
	if g.release != nil {
		_ = g.manager.Close()
		g.release()
		g.board, g.manager, g.release = nil, nil, nil
	}
}

func queryOfGuest(q hostcall.StateQuery) state.Query {
	opts := []state.Option{state.WithTag(q.Tag)}
	if q.Task != hostcall.AllTasks {
		opts = append(opts, state.WithTaskID(q.Task))
	}
	return state.NewQuery(opts...)
}

// watch turns the events of a subscription into messages. It implements
// [pending.Source].
type watch struct {
	guest   *Guest
	sub     *state.Subscription
	weight  int // included in the guest's watched
	release func()
}

// Ready implements [pending.Source].
func (w *watch) Ready() bool { return len(w.sub.Events()) > 0 || w.sub.Err() != nil }

// Next implements [pending.Source].
func (w *watch) Next() ([]byte, bool, error) {
	select {
	case e, ok := <-w.sub.Events():
		if !ok {
			return nil, false, w.sub.Err()
		}
		mine := *e
		mine.Cursor = "" // a guest can't resume a watch
		message, err := json.Marshal(&mine)
		return message, err == nil, err
	default:
		return nil, false, nil
	}
}

// Close implements [pending.Source].
func (w *watch) Close() {
	w.guest.watched -= w.weight
	w.weight = 0
	w.sub.Close()
	w.release()
}

// WorkerOf returns the worker of a job of the queue.
func (k *Keeper) WorkerOf(ctx context.Context, id string) (string, error) {
	job, err := k.jobs.Job(ctx, id)
	return job.Worker, err
}
