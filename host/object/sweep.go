package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// Calm postpones sweeps: until then the clock, which determines the ages of objects, may be
// wrong. It must be called before Run.
func (k *Keeper) Calm(until time.Time) { k.calm = until }

// sweep removes own objects of a certain age that no row refers to: those that a crash has left
// between an object and its commit, and uploads that no job has taken. Objects that were judged
// are not looked at again: when the row of one is removed, its reference is left for the
// janitor.
func (k *Keeper) sweep(ctx context.Context) error {
	now := k.cfg.Store.Now()
	if now.Before(k.calm) {
		return nil
	}
	before := now.Add(-k.cfg.OrphanAge)
	var errs []error
	for _, store := range k.cfg.Set.Stores() {
		errs = append(errs, k.cfg.Set.Sweep(ctx, store))
		n, err := k.sweepStore(ctx, store, before)
		if n > 0 {
			k.cfg.Logger.Info("payloads that no job refers to were removed", logkey.Payloads, store, logkey.Count, n)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (k *Keeper) sweepStore(ctx context.Context, store string, before time.Time) (removed int, err error) {
	after := k.swept[store]
	for judged := true; ; {
		keys, err := k.cfg.Set.Keys(ctx, store, after, before, page)
		if err != nil || len(keys) == 0 {
			return removed, err
		}
		full := len(keys) == page
		after = keys[len(keys)-1]
		n, all, err := k.judge(ctx, store, slices.DeleteFunc(keys, func(key string) bool { return !k.owns(key) }))
		removed += n
		if err != nil {
			return removed, err
		}
		if judged = judged && all; judged {
			k.swept[store] = after
		}
		if !full {
			return removed, nil
		}
	}
}

// judge removes the objects that no row refers to. all = none of the objects needs to be looked
// at again.
func (k *Keeper) judge(ctx context.Context, store string, keys []string) (removed int, all bool, err error) {
	var orphans []payload.Ref
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = payload.Name(store, key)
	}
	// Held objects are read before the rows: an object released in between has its row by now,
	// or is dropped.
	k.mu.Lock()
	held := make([]bool, len(names))
	for i, name := range names {
		held[i] = k.held[name] != nil
	}
	k.mu.Unlock()
	live, err := k.cfg.Store.Live(ctx, names)
	if err != nil {
		return 0, false, err
	}
	all = true
	for i, key := range keys {
		switch {
		case live[i]:
		case held[i]:
			all = false
		default:
			orphans = append(orphans, payload.Ref{Store: store, Key: key})
		}
	}
	gone, err := k.remove(ctx, orphans, true)
	return len(gone), all && len(gone) == len(orphans), err
}
