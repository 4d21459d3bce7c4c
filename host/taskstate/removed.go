package taskstate

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state"
)

// How states are removed whose jobs are gone, where they don't go with their rows.
const (
	removePage  = 256         // jobs that are listed together
	removers    = 8           // jobs whose states are deleted at the same time
	removeFirst = time.Second // until the next try when the store doesn't work
	removeMost  = time.Minute // at last
)

// Gone says that jobs were removed of which there may be states. It doesn't block.
func (k *Keeper) Gone() { k.removed.Beat() }

// EndRemoved ends those who use states of a job that was removed, as soon as it is gone and
// even while the store of states is away. It ends with ctx; its error is always nil.
func (k *Keeper) EndRemoved(ctx context.Context) error {
	if k.apart == nil {
		return nil // they go with the job
	}
	for {
		seen := k.removed.Beats()
		for _, job := range k.boards.Jobs() {
			err := k.apart.end(ctx, job)
			if err != nil && ctx.Err() == nil {
				k.log.Warn("watchers of the states of a job that was removed may see them for longer", logkey.Job, job.ID, logkey.Error, err)
			}
		}
		if _, err := op.Perform(ctx, k.removed.Changed(seen)); err != nil {
			return nil //nolint:nilerr // the end is no fault
		}
	}
}

// DeleteRemoved deletes the states of jobs that were removed: as soon as it is told of
// them, and at the start what the last process has left. It ends with ctx; its error is
// always nil, since a store that doesn't work is tried again.
func (k *Keeper) DeleteRemoved(ctx context.Context) error {
	if k.apart == nil {
		return nil // they go with the job
	}
	for wait := removeFirst; ; {
		next := k.removed.Changed(k.removed.Beats())
		err := k.deleteRemoved(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end is no fault
		}
		if err != nil {
			k.log.Warn("states of jobs that were removed are not deleted; it will be tried again", logkey.Duration, wait, logkey.Error, err)
			next = op.Wrap(op.After(wait), func(time.Time) (uint64, error) { return 0, nil })
			wait = min(2*wait, removeMost)
		} else {
			wait = removeFirst
		}
		if _, err := op.Perform(ctx, next); err != nil {
			return nil //nolint:nilerr // the end is no fault
		}
	}
}

// deleteRemoved goes once through the jobs that are gone. When the store is away it does
// not try each of them.
func (k *Keeper) deleteRemoved(ctx context.Context) error {
	for after := ""; ; {
		ids, err := k.apart.notes.StatesGone(ctx, after, removePage)
		if err != nil || len(ids) == 0 {
			return err
		}
		group, within := errgroup.WithContext(ctx)
		group.SetLimit(removers)
		for _, id := range ids {
			if within.Err() != nil {
				break
			}
			group.Go(func() error { return k.apart.clear(within, state.Job{ID: id}) })
		}
		if err := group.Wait(); err != nil {
			return errors.Join(err, ctx.Err())
		}
		after = ids[len(ids)-1]
	}
}
