package state

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
)

// Lister is a store that lists jobs for less than [Store.Jobs]: by their keys alone.
type Lister interface {
	// Keys lists up to limit jobs in the order of the bytes of their keys, after the one given.
	Keys(ctx context.Context, after string, limit int) ([]Job, error)
}

// keysAtOnce is how many jobs are listed at a time. Most have no runs, so that what is
// listed is another job, and of no use; and it may have to be paid for.
const keysAtOnce = 1

// DeleteAll removes the states of a job in all its runs, except for those of the host. It
// may be called again after an error, and when there are none.
func DeleteAll(ctx context.Context, store Store, id string) error {
	for after := id + runMark; ; {
		runs, err := keys(ctx, store, after, keysAtOnce)
		if err != nil {
			return err
		}
		for _, job := range runs {
			if job.ID != id || job.Run == "" {
				return remove(ctx, store, Job{ID: id})
			}
			if err := remove(ctx, store, job); err != nil {
				return err
			}
			after = job.Key()
		}
		if len(runs) < keysAtOnce {
			return remove(ctx, store, Job{ID: id})
		}
	}
}

// remove deletes a job, unless it is the host's; there need be none.
func remove(ctx context.Context, store Store, job Job) error {
	if job.OfHost() {
		return nil
	}
	err := store.Delete(ctx, job)
	if errors.Is(err, &jobhost.Error{Code: jobhost.CodeNotFound}) {
		return nil
	}
	return err
}

func keys(ctx context.Context, store Store, after string, limit int) ([]Job, error) {
	if l, ok := store.(Lister); ok {
		return l.Keys(ctx, after, limit)
	}
	infos, err := store.Jobs(ctx, after, limit)
	jobs := make([]Job, len(infos))
	for i := range infos {
		jobs[i] = infos[i].Job
	}
	return jobs, err
}
