package object

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// Parameters of removal.
const (
	page       = 256              // objects at a time
	retryFirst = time.Second      // first pause before a retry when a store doesn't work
	retryMost  = time.Minute      // longest pause
	sweepLeast = 10 * time.Second // minimum between two sweeps
	sweepMost  = 6 * time.Hour
)

// Run removes objects without references: when [Keeper.Gone] reports some, and at
// the start. It also sweeps for objects left by a crash, at the start and then
// every quarter of [Config.OrphanAge], within bounds. It ends with ctx; its error
// is always nil, since a failing store is retried.
func (k *Keeper) Run(ctx context.Context) error {
	k.Gone() // left by the last process
	sweep := time.NewTimer(0)
	defer sweep.Stop()
	retry := time.NewTimer(0)
	retry.Stop()
	defer retry.Stop()
	renew := time.NewTicker(ownerEvery)
	defer renew.Stop()
	k.renew(ctx)
	defer k.owners.end(ctx)
	wait := retryFirst
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
			err = k.clear(ctx)
		case <-retry.C:
			err = k.clear(ctx)
		case <-renew.C:
			k.renew(ctx)
			if !k.owners.begun {
				continue
			}
		case <-sweep.C:
			err = k.sweep(ctx)
			sweep.Reset(min(max(k.cfg.OrphanAge/4, sweepLeast), sweepMost))
			if err != nil {
				sweep.Reset(retryMost)
			}
		}
		if k.owners.begun {
			k.owners.begun = false
			k.Gone()
			sweep.Reset(0)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			wait = retryFirst
			continue
		case errors.Is(err, payload.ErrBusy), errors.Is(err, errNotOwner), // a backup, which is no fault, or already logged
			errors.Is(err, errNoLease), k.cfg.Store.Err() != nil: // for the next host
		default:
			k.cfg.Logger.Warn("unreferenced payloads are not removed yet; it will be retried", logkey.Error, err)
		}
		retry.Reset(wait)
		wait = min(2*wait, retryMost)
	}
}

// clear deletes dropped objects, and those that the store lists as gone.
func (k *Keeper) clear(ctx context.Context) error {
	k.mu.Lock()
	dropped := k.dropped
	k.dropped = nil
	k.mu.Unlock()
	var errs []error
	if len(dropped) > 0 {
		_, err := k.remove(ctx, dropped, false)
		errs = append(errs, err) // the sweep takes care of the rest
	}
	for after := ""; ; {
		texts, err := k.cfg.Store.Gone(ctx, after, page)
		if err != nil || len(texts) == 0 {
			return errors.Join(append(errs, err)...)
		}
		after = texts[len(texts)-1]
		errs = append(errs, k.clearPage(ctx, texts))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(texts) < page {
			return errors.Join(errs...)
		}
	}
}

// clearPage deletes the objects of lost references, and forgets the references of
// those that were deleted.
func (k *Keeper) clearPage(ctx context.Context, texts []string) error {
	forget := &record.Forget{}
	var refs []payload.Ref
	for _, text := range texts {
		ref, err := payload.ParseRef(text)
		if err != nil { // a damaged row: it identifies no object
			forget.Refs = append(forget.Refs, text)
			continue
		}
		refs = append(refs, ref)
	}
	removed, err := k.remove(ctx, refs, false)
	for _, ref := range removed {
		forget.Refs = append(forget.Refs, ref.String())
	}
	if len(forget.Refs) > 0 {
		err = errors.Join(err, commit(ctx, k.cfg.Store, forget))
	}
	return err
}

// remove deletes objects that are not held, store by store, and returns those that
// are gone now. Objects in a store that was removed from the manifest, and those of
// another origin, stay where they are but count as gone.
func (k *Keeper) remove(ctx context.Context, refs []payload.Ref, orphans bool) (removed []payload.Ref, err error) {
	byStore := map[string][]payload.Ref{}
	refs, removed = k.divide(refs)
	for _, ref := range k.claim(refs) {
		byStore[ref.Store] = append(byStore[ref.Store], ref)
	}
	var errs []error
	for store, refs := range byStore {
		free, others := k.removableNow(ctx, store, refs)
		gone, err := k.deleteAll(ctx, free)
		k.disclaim(refs)
		if errors.Is(err, payload.ErrNoStore) {
			k.cfg.Logger.Warn("payloads stay in a store that the manifest doesn't have any more", logkey.Payloads, store, logkey.Count, len(free))
			gone, err = free, nil
		} else if len(gone) > 0 {
			k.removed.add(gone)
			k.cfg.Removed(len(gone), orphans)
		}
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, others)
		}
		removed = append(removed, gone...)
	}
	return removed, errors.Join(errs...)
}

// deleteAtOnce is how many objects are deleted between two looks at the lease of a store that
// hosts share.
const deleteAtOnce = 16

// errNoLease is why nothing is deleted for now.
var errNoLease = errors.New("the lease of the store was not renewed for a while, so another host may lead soon")

// deleteAll deletes objects of one store, as long as this host may, and returns those that are gone.
// Another host that leads may refer to what this one has found to be without a reference.
func (k *Keeper) deleteAll(ctx context.Context, refs []payload.Ref) (gone []payload.Ref, err error) {
	most := max(len(refs), 1)
	leased, shared := k.cfg.Store.(record.Leased)
	if shared {
		most = deleteAtOnce
	}
	for some := range slices.Chunk(refs, most) {
		if err := k.cfg.Store.Err(); err != nil {
			return gone, err
		}
		if shared && leased.Holding() {
			return gone, errNoLease
		}
		if err := k.cfg.Set.Delete(ctx, some); err != nil {
			return gone, err
		}
		gone = append(gone, some...)
	}
	return gone, nil
}

// divide separates own objects from those left to others: see [TakeOver].
func (k *Keeper) divide(refs []payload.Ref) (own, others []payload.Ref) {
	for _, ref := range refs {
		if k.owns(ref.Key) {
			own = append(own, ref)
		} else {
			others = append(others, ref)
		}
	}
	return own, others
}

// owns reports whether this host removes the object when no row refers to it.
func (k *Keeper) owns(key string) bool {
	o, ok := payload.OriginOf(key)
	return ok && slices.Contains(k.own, o)
}

// claim returns the objects that are not held. Until disclaim they can't be held.
func (k *Keeper) claim(refs []payload.Ref) []payload.Ref {
	k.mu.Lock()
	defer k.mu.Unlock()
	var free []payload.Ref
	for _, ref := range refs {
		name := ref.Name()
		if k.held[name] != nil {
			k.waiting = true
			continue
		}
		k.deleting[name] = true
		free = append(free, ref)
	}
	return free
}

func (k *Keeper) disclaim(refs []payload.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ref := range refs {
		delete(k.deleting, ref.Name())
	}
}
