package object

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// How unavailable stores are probed.
const (
	probeFirst  = 250 * time.Millisecond // before the first probe
	probeMost   = 5 * time.Second        // between two
	probeWithin = 5 * time.Second        // for the answer
	// settled is how long a store must have been back for its next outage to start with short
	// pauses again.
	settled = 30 * time.Second
	// lastWithin is the time for storing kept results at shutdown.
	lastWithin = 5 * time.Second
)

var (
	errAway   = errors.New("the store is away")
	errEnding = errors.New("the host stops, and the payload store still takes nothing")
)

// kept is a result in memory that waits for its store. It implements [queue.Kept].
type kept struct {
	k    *Keeper
	copy *copied
	then func(payload.Ref, error)
}

// Then implements [queue.Kept].
func (r *kept) Then(f func(payload.Ref, error)) {
	r.then = f
	k := r.k
	k.mu.Lock()
	ended := k.ended
	if !ended {
		k.kept = append(k.kept, r)
		k.cfg.Kept(len(k.kept))
	}
	k.mu.Unlock()
	if ended {
		r.end(payload.Ref{}, errEnding)
		return
	}
	k.wakeWatch()
}

func (r *kept) end(ref payload.Ref, err error) {
	r.copy.release()
	r.then(ref, err)
}

// Watch probes unavailable stores until they are back, and then stores the results kept for
// them. No slot and no task waits for it. It ends with ctx, after a last try; its error is
// always nil.
func (k *Keeper) Watch(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.changed:
		case <-timer.C:
		}
		next := k.look(ctx)
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
	k.giveUp(context.WithoutCancel(ctx))
	return nil
}

// look probes the sides that are due, and returns when the next one is.
func (k *Keeper) look(ctx context.Context) (next time.Time) {
	for _, s := range k.sides {
		if s.away.Load() == nil {
			k.notifyBack(s)
			continue
		}
		now := time.Now()
		if s.next.IsZero() {
			if s.wait == 0 || now.Sub(s.back) > settled {
				s.wait = probeFirst
			}
			s.next = now.Add(s.wait)
		}
		if !now.Before(s.next) {
			k.probe(ctx, s)
			if s.away.Load() == nil {
				k.notifyBack(s)
				continue
			}
			s.wait = min(2*s.wait, probeMost)
			s.next = time.Now().Add(s.wait)
		}
		if next.IsZero() || s.next.Before(next) {
			next = s.next
		}
	}
	if k.target.away.Load() == nil {
		k.storeKept(ctx)
	}
	return next
}

// notifyBack resumes what waits for a side, if it was unavailable.
func (k *Keeper) notifyBack(s *side) {
	if !s.returned.Swap(false) {
		return
	}
	s.next, s.back = time.Time{}, time.Now()
	if notify := k.notify.Load(); notify != nil {
		(*notify)()
	}
}

// probe tests a side.
func (k *Keeper) probe(ctx context.Context, s *side) {
	if s.verb == payload.Put && k.storeOne(ctx) {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeWithin, errSilent)
	defer cancel()
	if s.verb == payload.Put {
		k.probePut(ctx)
		return
	}
	s.mu.Lock()
	refs := append([]payload.Ref(nil), s.probes...)
	s.mu.Unlock()
	for _, ref := range refs {
		if k.probeGet(ctx, s, ref) || ctx.Err() != nil {
			return
		}
	}
}

// probeGet reports whether a store has returned an object, or has said what is wrong with it.
func (k *Keeper) probeGet(ctx context.Context, s *side, ref payload.Ref) bool {
	r, err := k.cfg.Set.Open(ctx, ref)
	if err == nil {
		_, err = r.Read(make([]byte, 1))
		_ = r.Close()
	}
	if err != nil && !payload.Permanent(err) {
		return false
	}
	k.works(s)
	return true
}

// probePut writes a small object, which is removed again, unless results are waiting: a store
// that accepts only small ones is not back.
func (k *Keeper) probePut(ctx context.Context) {
	k.mu.Lock()
	waiting := len(k.kept) > 0
	k.mu.Unlock()
	if waiting {
		return
	}
	if ref, err := k.cfg.Set.Put(ctx, strings.NewReader("is this store back?"), 64); err == nil {
		k.works(k.target)
		k.drop(ref)
	}
}

// storeKept stores the kept results, one after another.
func (k *Keeper) storeKept(ctx context.Context) {
	for ctx.Err() == nil && k.storeOne(ctx) && k.target.away.Load() == nil {
	}
}

// storeOne stores the oldest kept result; false = there is none, or it was not stored.
func (k *Keeper) storeOne(ctx context.Context) bool {
	k.mu.Lock()
	if len(k.kept) == 0 {
		k.mu.Unlock()
		return false
	}
	r := k.kept[0]
	k.mu.Unlock()
	ref, err := k.write(ctx, r.copy)
	if err != nil {
		return false
	}
	k.mu.Lock()
	k.kept = k.kept[1:]
	k.cfg.Kept(len(k.kept))
	k.mu.Unlock()
	r.end(ref, nil)
	return true
}

// write creates an object from a copy.
func (k *Keeper) write(ctx context.Context, c *copied) (payload.Ref, error) {
	w, err := k.begin(ctx, c.size)
	if err != nil {
		return payload.Ref{}, err
	}
	defer w.Abort()
	if err := c.writeTo(w); err != nil {
		return payload.Ref{}, err
	}
	return w.Commit()
}

// giveUp tries a last time to store the kept results. The tasks of the remaining ones run
// again.
func (k *Keeper) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, lastWithin, errSilent)
	defer cancel()
	for k.storeOne(ctx) {
	}
	k.mu.Lock()
	left := k.kept
	k.kept, k.ended = nil, true
	k.mu.Unlock()
	if len(left) > 0 {
		k.cfg.Logger.Warn("results are lost that their payload store didn't take; their tasks run again", logkey.Count, len(left))
	}
	for _, r := range left {
		r.end(payload.Ref{}, errEnding)
	}
}
