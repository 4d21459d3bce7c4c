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

// Notes is the part of the job store that records which jobs may have states in a separate store, and
// which of those jobs were removed. [record.Store] has it.
type Notes interface {
	record.StateReader
	Commit(ops []record.Op, done func([]record.OpResult, error))
}

// apart is a store of states that is separate from that of the jobs, so that states can't be removed in
// the same transaction as their job. That transaction only records the job's id. Until its states are
// deleted they are not shown: a caller that asks for the id deletes them first.
//
//	first state ─► note (durable) ─► state            removal + "gone" (one transaction)
//	                                                     │
//	          board of the id ends ◄─────────────────────┤ at once, and by a caller that asks for the id
//	          delete, then forget  ◄─────────────────────┘ by a caller that asks, or in the background
//
// An id is forgotten only after its states were deleted, and a new job with the id can use states only
// after that; so whatever a crash interrupts can be repeated.
type apart struct {
	state.Store
	notes  Notes
	boards *state.Boards

	mu   sync.Mutex            // protects busy
	busy map[string]*op.Signal // ids whose states are being removed; fired afterwards
}

// Open implements [state.Store].
func (a *apart) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	src, err := a.Store.Open(ctx, job, tasks, feed)
	if err != nil || job.OfHost() {
		return src, err
	}
	s := &noted{Source: src, apart: a, id: job.ID}
	// There may be states of other writers already. Reading them must be possible without the note, for
	// example on a full disk.
	_ = s.note(ctx)
	return s, nil
}

// noted is a source that sets no state before its job is recorded in the notes.
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

// isGone reports whether a job was removed whose states may still exist.
func (a *apart) isGone(ctx context.Context, job state.Job) (bool, error) {
	if job.OfHost() {
		return false, nil
	}
	_, gone, err := a.notes.StatesOf(ctx, job.ID)
	return gone, err
}

// clear removes the states of a job that is gone, so that a new job with its id starts without any. If
// the job isn't gone it does nothing.
func (a *apart) clear(ctx context.Context, job state.Job) error {
	return a.ifGone(ctx, job, func() error {
		if err := state.DeleteAll(ctx, a.Store, job.ID); err != nil {
			return fmt.Errorf("delete the states of the job %s that was removed: %w", job.ID, err)
		}
		// Not cancelled by ctx: the id stays locked until the commit is known.
		return a.commit(context.WithoutCancel(ctx), &record.ForgetStates{IDs: []string{job.ID}})
	})
}

// end ends all users of the states of a job that is gone, unless that is being done already.
func (a *apart) end(ctx context.Context, job state.Job) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	release, _ := a.tryLock(job.ID)
	if release == nil {
		return nil
	}
	defer release()
	return a.endGone(ctx, job, func() error { return nil })
}

// ifGone calls do if a job is gone, with its id locked: once an id isn't gone any more, its states
// belong to a new job.
func (a *apart) ifGone(ctx context.Context, job state.Job, do func() error) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	release, err := a.lock(ctx, job.ID)
	if err != nil {
		return err
	}
	defer release()
	return a.endGone(ctx, job, do)
}

// endGone ends all users of the states of a job that is still gone, and calls do. The caller has locked
// the id.
func (a *apart) endGone(ctx context.Context, job state.Job, do func() error) error {
	gone, err := a.isGone(ctx, job)
	if err != nil || !gone {
		return err
	}
	a.boards.End(func(of state.Job) bool { return of.ID == job.ID && !of.OfHost() }, state.ErrDeleted)
	return do()
}

// lock locks an id until release, waiting for its turn.
func (a *apart) lock(ctx context.Context, id string) (release func(), err error) {
	for {
		release, other := a.tryLock(id)
		if release != nil {
			return release, nil
		}
		if _, err := op.Perform(ctx, other.Wait()); err != nil {
			return nil, err
		}
	}
}

// tryLock locks an id until release; nil = it is locked, and the signal fires when it isn't any more.
func (a *apart) tryLock(id string) (release func(), other *op.Signal) {
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
