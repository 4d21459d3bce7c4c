package taskstate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state"
)

// Notes is the part of the store of jobs that knows of which jobs there may be states in
// a store elsewhere, and which of those jobs were removed. [record.Store] has it.
type Notes interface {
	record.StateReader
	Commit(ops []record.Op, done func([]record.OpResult, error))
}

// apart is a store of states that is elsewhere than the jobs, so that their states can't
// go in the transaction that removes them. That transaction only notes the job's id. Until
// its states are deleted they are not shown: a caller that asks for the id deletes them first.
//
//	first state ─► note (durable) ─► state            removal + "gone" (one transaction)
//	                                                     │
//	          board of the id ends ◄─────────────────────┤ at once, and by a caller that asks for the id
//	          delete, then forget  ◄─────────────────────┘ by a caller that asks, or in the background
//
// An id is forgotten only after its states were deleted, and a job of the id can use states
// only after that; so whatever a crash interrupts can be done again.
type apart struct {
	state.Store
	notes  Notes
	boards *state.Boards

	mu   sync.Mutex            // protects busy
	busy map[string]*op.Signal // ids whose states are being removed; fired after that
}

// Open implements [state.Store].
func (a *apart) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	src, err := a.Store.Open(ctx, job, tasks, feed)
	if err != nil || job.OfHost() {
		return src, err
	}
	s := &noted{Source: src, apart: a, id: job.ID}
	// There may be states of others already. To see them is possible without the note: on
	// a full disk, say.
	_ = s.note(ctx)
	return s, nil
}

// noted is a source that sets no state before its job is noted.
type noted struct {
	state.Source
	apart *apart
	id    string
	done  atomic.Bool
}

// Set implements [state.Source].
func (s *noted) Set(ctx context.Context, st state.State) (state.State, error) {
	if err := s.note(ctx); err != nil {
		return state.State{}, err
	}
	return s.Source.Set(ctx, st)
}

func (s *noted) note(ctx context.Context) error {
	if s.done.Load() {
		return nil
	}
	is, _, err := s.apart.notes.StatesOf(ctx, s.id)
	if err == nil && !is {
		err = s.apart.commit(ctx, &record.NoteStates{ID: s.id})
	}
	if err != nil {
		return fmt.Errorf("note that job %s has states: %w", s.id, err)
	}
	s.done.Store(true)
	return nil
}

// commit makes a change of the notes durable.
func (a *apart) commit(ctx context.Context, change record.Op) error {
	var done op.Future[struct{}]
	a.notes.Commit([]record.Op{change}, func(_ []record.OpResult, err error) { done.Set(struct{}{}, err) })
	_, err := op.Perform(ctx, done.Get())
	return err
}

// isGone reports whether a job was removed whose states may still be there.
func (a *apart) isGone(ctx context.Context, job state.Job) (bool, error) {
	if job.OfHost() {
		return false, nil
	}
	_, gone, err := a.notes.StatesOf(ctx, job.ID)
	return gone, err
}

// clear removes the states of a job that is gone, so that a new one with its id begins
// without. Of a job that isn't gone it only finds that out.
func (a *apart) clear(ctx context.Context, job state.Job) error {
	return a.ifGone(ctx, job, func() error {
		if err := state.DeleteAll(ctx, a.Store, job.ID); err != nil {
			return fmt.Errorf("delete the states of the job %s that was removed: %w", job.ID, err)
		}
		// Not given up with ctx: the turn lasts until it is known to be forgotten.
		return a.commit(context.WithoutCancel(ctx), &record.ForgetStates{IDs: []string{job.ID}})
	})
}

// end ends all who use states of a job that is gone, unless another is about to.
func (a *apart) end(ctx context.Context, job state.Job) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	release, _ := a.tryTurn(job.ID)
	if release == nil {
		return nil
	}
	defer release()
	return a.endGone(ctx, job, func() error { return nil })
}

// ifGone does something if a job is gone. Meanwhile no one else does so with that id:
// once an id isn't gone any more, what there is belongs to a new job.
func (a *apart) ifGone(ctx context.Context, job state.Job, do func() error) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	release, err := a.turn(ctx, job.ID)
	if err != nil {
		return err
	}
	defer release()
	return a.endGone(ctx, job, do)
}

// endGone ends all who use states of a job that is still gone, and does something. It is
// the caller's turn.
func (a *apart) endGone(ctx context.Context, job state.Job, do func() error) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	a.boards.End(func(of state.Job) bool { return of.ID == job.ID && !of.OfHost() }, state.ErrDeleted)
	return do()
}

// turn waits until it is the caller's turn to look after an id, until release.
func (a *apart) turn(ctx context.Context, id string) (release func(), err error) {
	for {
		release, other := a.tryTurn(id)
		if release != nil {
			return release, nil
		}
		if _, err := op.Perform(ctx, other.Wait()); err != nil {
			return nil, err
		}
	}
}

// tryTurn makes it the caller's turn to look after an id, until release; nil = it is that
// of another, who fires the signal.
func (a *apart) tryTurn(id string) (release func(), other *op.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if other := a.busy[id]; other != nil {
		return nil, other
	}
	mine := new(op.Signal)
	a.busy[id] = mine
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.busy, id)
		mine.Fire()
	}, nil
}
