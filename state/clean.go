package state

import (
	"context"
	"errors"
	"time"

	"github.com/jobhost/jobhost"
)

// Clean marks jobs as deleted that have not changed for a time, and removes those
// that have not for a longer one. keep, if not nil, names jobs to leave alone. It
// goes through the store in small batches, and an error leaves what was done done.
func Clean(ctx context.Context, store Store, c jobhost.StateCleanup, now time.Time, keep func(Job) (bool, error)) (jobhost.StateCleaned, error) {
	done := jobhost.StateCleaned{DryRun: c.DryRun}
	if err := c.Check(); err != nil {
		return done, err
	}
	for after := ""; ; {
		batch, err := store.Jobs(ctx, after, cleanBatch)
		if err != nil {
			return done, err
		}
		for i := range batch {
			if err := cleanJob(ctx, store, &batch[i], c, now, keep, &done); err != nil {
				return done, err
			}
		}
		if len(batch) < cleanBatch {
			return done, nil
		}
		after = batch[len(batch)-1].Key()
	}
}

// cleanBatch is how many jobs are looked at together.
const cleanBatch = 100

func cleanJob(ctx context.Context, store Store, job *Info, c jobhost.StateCleanup, now time.Time, keep func(Job) (bool, error), done *jobhost.StateCleaned) error {
	age := now.Sub(job.ChangedAt)
	remove := age >= time.Duration(c.DeleteAge)
	if !remove && (age < time.Duration(c.TombstoneAge) || !job.DeletedAt.IsZero()) {
		return nil
	}
	if keep != nil {
		if kept, err := keep(job.Job); kept || err != nil {
			return err
		}
	}
	act, count := store.Mark, &done.Tombstoned
	if remove {
		act, count = store.Delete, &done.Deleted
	}
	if !c.DryRun {
		err := act(ctx, job.Job)
		if errors.Is(err, &jobhost.Error{Code: jobhost.CodeNotFound}) {
			return nil // another caller was quicker
		}
		if err != nil {
			return err
		}
	}
	*count++
	return nil
}
