// Package taskstate connects the states that tasks report with the queue: the progress of
// each, who may see it, and, under the tag "_run", the state of the queue's own attempts.
//
//	guests, API ─► Keeper ─► state.Boards ─► runs ─► the store of states
//	                                          ▲
//	                         events of the queue, and its jobs as they are
//
// The states under "_run" are not stored: they are derived from what the queue keeps about
// a task, and from its events while they are watched.
package taskstate

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state"
)

// Jobs provides the jobs of the queue.
type Jobs interface {
	Job(ctx context.Context, id string) (jobhost.Job, error)
}

// Config configures a keeper.
type Config struct {
	// Store keeps the states. The caller closes it after the keeper.
	Store state.Store
	Jobs  Jobs
	// Notes is set if Store does not remove states together with their job in one
	// transaction: then they are removed afterwards. Nil = it does.
	Notes Notes
	// Observe is notified of operations, for metrics.
	Observe state.Observer
	Logger  *slog.Logger
}

// ErrNone is the error of a host that keeps no states.
var ErrNone error = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host keeps no states"}

// Keeper keeps the states of all jobs of a host. It is safe for concurrent use.
type Keeper struct {
	store   state.Store
	jobs    Jobs
	runs    *runs
	boards  *state.Boards
	apart   *apart   // nil = states are removed with their job
	removed op.Pulse // beats when jobs are removed
	observe state.Observer
	log     *slog.Logger
}

var (
	_ jobhost.StateKeeper  = (*Keeper)(nil)
	_ jobhost.StateCleaner = (*Keeper)(nil)
)

// New returns a keeper.
func New(cfg Config) *Keeper {
	r := &runs{Store: cfg.Store, jobs: cfg.Jobs, followed: map[string]map[*run]struct{}{}}
	if costly, ok := cfg.Store.(state.Costly); ok {
		r.idle = costly.IdleTime()
	}
	k := &Keeper{
		store: cfg.Store, jobs: cfg.Jobs, runs: r, boards: state.NewBoards(r, cfg.Observe), observe: cfg.Observe, log: cfg.Logger,
	}
	if cfg.Notes != nil {
		k.apart = &apart{Store: cfg.Store, notes: cfg.Notes, boards: k.boards, busy: map[string]*op.Signal{}}
		r.Store = k.apart
	}
	return k
}

// Published takes an event of the queue. It must be called in the order of a task's
// events; events of jobs that aren't watched cost next to nothing.
func (k *Keeper) Published(e *jobhost.Event) {
	if e.Kind == jobhost.EventSubmitted {
		// What was reported under the id earlier knows nothing of the job.
		k.boards.Forget(state.Job{ID: e.Job})
	}
	k.runs.published(e)
}

// Close ends all subscriptions.
func (k *Keeper) Close() { k.boards.Close() }

// board returns the board of a job. It is created with that many tasks if the queue
// doesn't know the job; 0 = it must exist. What an earlier job with the id left is deleted
// first.
func (k *Keeper) board(ctx context.Context, job state.Job, tasks int) (*state.Board, func(), error) {
	if err := job.Check(); err != nil {
		return nil, nil, err
	}
	if k.apart != nil {
		if err := k.apart.clear(ctx, job); err != nil {
			return nil, nil, err
		}
	}
	return k.boards.Acquire(ctx, job, tasks)
}

// StateJobs implements [jobhost.StateKeeper].
func (k *Keeper) StateJobs(ctx context.Context, filter jobhost.StateJobFilter) (jobhost.StateJobPage, error) {
	page := jobhost.StateJobPage{Jobs: []jobhost.StateJob{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	limit := filter.Limit
	if limit == 0 {
		limit = 50
	}
	for after := filter.Cursor; ; {
		batch, err := k.store.Jobs(ctx, after, limit+1)
		if err != nil {
			return page, err
		}
		for i := range batch {
			// A store may know a job just because it was queried.
			if batch[i].States == 0 || !batch[i].DeletedAt.IsZero() && !filter.Deleted {
				continue
			}
			if gone, err := k.gone(ctx, batch[i].Job); err != nil {
				return page, err
			} else if gone {
				continue
			}
			if len(page.Jobs) == limit {
				last := page.Jobs[limit-1]
				page.Next = state.Job{ID: last.Job, Run: last.Run}.Key()
				return page, nil
			}
			page.Jobs = append(page.Jobs, describe(&batch[i]))
		}
		if len(batch) <= limit {
			return page, nil
		}
		after = batch[limit].Key()
	}
}

// gone reports whether states belong to a job that was removed, and will be removed too.
func (k *Keeper) gone(ctx context.Context, job state.Job) (bool, error) {
	if k.apart == nil {
		return false, nil
	}
	return k.apart.isGone(ctx, job)
}

func describe(info *state.Info) jobhost.StateJob {
	job := jobhost.StateJob{
		Job: info.ID, Run: info.Run, Tasks: info.Tasks, States: info.States,
		CreatedAt: info.CreatedAt.UTC(), ChangedAt: info.ChangedAt.UTC(),
	}
	if !info.DeletedAt.IsZero() {
		at := info.DeletedAt.UTC()
		job.DeletedAt = &at
	}
	return job
}

// queryOf converts a query for a board.
func queryOf(q *jobhost.StateQuery) state.Query {
	opts := []state.Option{state.WithTag(q.Tag), state.WithAfter(q.After)}
	if q.Task != nil {
		opts = append(opts, state.WithTaskID(*q.Task))
	}
	return state.NewQuery(opts...)
}

// States implements [jobhost.StateKeeper].
func (k *Keeper) States(ctx context.Context, query jobhost.StateQuery) (jobhost.StateReport, error) {
	b, release, err := k.board(ctx, state.Job{ID: query.Job, Run: query.Run}, 0)
	if err != nil {
		return jobhost.StateReport{}, err
	}
	defer release()
	q := queryOf(&query)
	lowest, err := b.Get(q)
	if err != nil {
		return jobhost.StateReport{}, err
	}
	list, err := b.List(q)
	if err != nil {
		return jobhost.StateReport{}, err
	}
	return jobhost.StateReport{Job: query.Job, Run: query.Run, Tasks: b.Tasks(), State: lowest, States: list}, nil
}

// SetState implements [jobhost.StateKeeper].
func (k *Keeper) SetState(ctx context.Context, run string, s jobhost.TaskState, tasks int) (jobhost.TaskState, error) {
	if err := errors.Join(s.Check(), checkOwn("tag", s.Tag), checkOwn("run", run)); err != nil {
		return s, err
	}
	began := time.Now()
	b, release, err := k.board(ctx, state.Job{ID: s.JobID, Run: run}, tasks)
	if err != nil {
		k.unwritten(time.Since(began), err)
		return s, err
	}
	defer release()
	return b.Set(ctx, s)
}

// unwritten counts a write that failed before it reached a board, which counts the others.
func (k *Keeper) unwritten(took time.Duration, err error) {
	if k.observe.Wrote != nil {
		k.observe.Wrote(took, err)
	}
}

// checkOwn reserves the host's tags and runs for the host.
func checkOwn(field, name string) error {
	proper := jobhost.CheckRun(name) == nil // an invalid name is reported by another check
	if !proper || !strings.HasPrefix(name, jobhost.ReservedTags) {
		return nil
	}
	return &jobhost.Error{Code: jobhost.CodeDenied, Field: field, Message: field + " " + name + " is the host's own"}
}

// WatchStates implements [jobhost.StateKeeper].
func (k *Keeper) WatchStates(ctx context.Context, query jobhost.StateQuery) iter.Seq2[jobhost.StateEvent, error] {
	return k.WatchStatesWithin(ctx, query, func(int) error { return nil })
}

// WatchStatesWithin is WatchStates for readers who may be many and slow: room is asked whether there is
// room for about so many bytes of states, which the reader begins with. They are held until the sentinel
// is read. An error of room is the one that ends it.
func (k *Keeper) WatchStatesWithin(ctx context.Context, query jobhost.StateQuery, room func(bytes int) error) iter.Seq2[jobhost.StateEvent, error] {
	return func(yield func(jobhost.StateEvent, error) bool) {
		b, release, err := k.board(ctx, state.Job{ID: query.Job, Run: query.Run}, 0)
		if err != nil {
			yield(jobhost.StateEvent{}, err)
			return
		}
		defer release()
		sub, err := b.Subscribe(ctx, queryOf(&query), nil)
		if err != nil {
			yield(jobhost.StateEvent{}, err)
			return
		}
		defer sub.Close()
		if err := room(sub.Weight()); err != nil {
			yield(jobhost.StateEvent{}, err)
			return
		}
		for event := range sub.Events() {
			if !yield(*event, nil) {
				return
			}
		}
		yield(jobhost.StateEvent{}, sub.Err())
	}
}

// DeleteStates implements [jobhost.StateCleaner].
func (k *Keeper) DeleteStates(ctx context.Context, id, run string) error {
	job := state.Job{ID: id, Run: run}
	if err := job.Check(); err != nil {
		return err
	}
	known, err := k.queued(ctx, job)
	if err != nil {
		return err
	}
	if known {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "job", Message: "job " + id + " is in the queue",
			Hint: "its states go with it: delete the job",
		}
	}
	return k.store.Delete(ctx, job)
}

// CleanStates implements [jobhost.StateCleaner]. States of running fibers stay.
func (k *Keeper) CleanStates(ctx context.Context, c jobhost.StateCleanup) (jobhost.StateCleaned, error) {
	done, err := state.Clean(ctx, k.store, c, time.Now(), func(job state.Job) (bool, error) {
		if job.OfHost() && k.boards.InUse(job) { // a fiber may report nothing new for a long time
			return true, nil
		}
		return k.queued(ctx, job)
	})
	if err == nil && !c.DryRun && done.Tombstoned+done.Deleted > 0 {
		k.log.Info("states were cleaned up", logkey.Count, done.Tombstoned+done.Deleted)
	}
	return done, err
}

// queued reports whether the queue has the job of these states.
func (k *Keeper) queued(ctx context.Context, job state.Job) (bool, error) {
	if job.OfHost() {
		return false, nil
	}
	_, err := k.jobs.Job(ctx, job.ID)
	if jobhost.CodeOf(err) == jobhost.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
