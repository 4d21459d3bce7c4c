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

// How states of removed jobs are deleted, where they aren't removed with the job.
const (
	removePage  = 256         // jobs listed at a time
	removers    = 8           // jobs whose states are deleted at the same time
	removeFirst = time.Second // first pause before a retry when the store doesn't work
	removeMost  = time.Minute // longest pause
)

// Gone reports that jobs were removed that may have states. It doesn't block.
func (k *Keeper) Gone() { k.removed.Beat() }

// EndRemoved ends all users of the states of a job as soon as the job was removed, even
// while the store of states is unavailable. It ends with ctx; its error is always nil.
func (k *Keeper) EndRemoved(ctx context.Context) error {
	if k.apart == nil {
		return nil // they are removed with the job
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

// DeleteRemoved deletes the states of removed jobs: those that the last process left, and
// then each as soon as Gone reports it. It ends with ctx; its error is always nil, since a
// failing store is retried.
func (k *Keeper) DeleteRemoved(ctx context.Context) error {
	if k.apart == nil {
		return nil // they are removed with the job
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

// deleteRemoved goes through the removed jobs once. If the store is unavailable it stops
// early.
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
