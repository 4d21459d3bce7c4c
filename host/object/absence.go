package object

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// side is reading from, or writing to, a payload store. A store on a full disk can be read but
// not written.
type side struct {
	store string
	verb  payload.Verb               // [payload.Get] or [payload.Put]
	away  atomic.Pointer[queue.Away] // nil = it works, as far as is known

	// returned: it is back, and what waits for it hasn't been resumed yet.
	returned atomic.Bool

	mu     sync.Mutex    // protects probes
	probes []payload.Ref // objects that tasks wait for, newest last

	// Only used by Watch:
	wait time.Duration // until the next probe, while it is away
	next time.Time     // when the next probe is due
	back time.Time     // when it last came back
}

// mostProbes is how many objects of a store are remembered for probing. There are several, so
// that a single unreadable one doesn't stand for all.
const mostProbes = 4

type sideKey struct {
	store string
	verb  payload.Verb
}

func newSides(stores []string) map[sideKey]*side {
	sides := map[sideKey]*side{}
	for _, store := range stores {
		for _, verb := range []payload.Verb{payload.Get, payload.Put} {
			sides[sideKey{store, verb}] = &side{store: store, verb: verb}
		}
	}
	return sides
}

// remember notes an object for probing the side.
func (s *side) remember(ref payload.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.probes {
		if known.Key == ref.Key {
			s.probes = append(append(s.probes[:i], s.probes[i+1:]...), ref)
			return
		}
	}
	if len(s.probes) == mostProbes {
		s.probes = s.probes[1:]
	}
	s.probes = append(s.probes, ref)
}

// verdict is met for a call that was timed by p.
func (k *Keeper) verdict(p *stallTimer, verb payload.Verb, ref payload.Ref, err error) error {
	gaveUp, err := p.end(err)
	if gaveUp {
		return err
	}
	return k.met(verb, ref, err)
}

// met judges a store by the result of a call whose own context has not ended. It returns the
// error, as a [queue.StoreFault] if the store is to blame.
func (k *Keeper) met(verb payload.Verb, ref payload.Ref, err error) error {
	s := k.sides[sideKey{ref.Store, verb}]
	switch {
	case s == nil:
		return err
	case err == nil, errors.Is(err, payload.ErrTooLarge):
		k.works(s)
		return err
	case payload.Permanent(err):
		k.works(s)
		if errors.Is(err, payload.ErrNotFound) && k.young(ref) {
			return &queue.StoreFault{Store: s.store, Verb: verb, Young: true, Err: err}
		}
		return err
	}
	if verb == payload.Get {
		s.remember(ref)
	}
	if s.away.CompareAndSwap(nil, &queue.Away{Store: s.store, Verb: verb, Since: time.Now()}) {
		k.cfg.Logger.Error("payload store is away; what needs it waits", logkey.Payloads, s.store, logkey.Verb, verb, logkey.Error, err)
		k.cfg.Away(s.store, verb, true)
		k.wakeWatch()
	}
	return &queue.StoreFault{Store: s.store, Verb: verb, Err: err}
}

// works notes that a side of a store works.
func (k *Keeper) works(s *side) {
	away := s.away.Load()
	if away == nil || !s.away.CompareAndSwap(away, nil) {
		return
	}
	k.cfg.Logger.Info("payload store is back", logkey.Payloads, s.store, logkey.Verb, s.verb, logkey.Duration, time.Since(away.Since))
	k.cfg.Away(s.store, s.verb, false)
	s.returned.Store(true)
	k.wakeWatch() // which notifies the others: the caller may hold locks
}

// young reports whether an object is so new that its store may not show it yet.
func (k *Keeper) young(ref payload.Ref) bool {
	made, ok := payload.KeyTime(ref.Key)
	return ok && time.Since(made) < k.cfg.YoungFor && !k.removed.has(ref.Key)
}

// removals are the objects that this process removed recently: those are really gone.
type removals struct {
	mu   sync.Mutex // protects keys and ring
	keys map[string]struct{}
	ring []string
}

// mostRemovals bounds them; a forgotten one is treated as not shown yet while it is young.
const mostRemovals = 4096

func (r *removals) add(refs []payload.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	for _, ref := range refs {
		if _, has := r.keys[ref.Key]; has {
			continue // a second entry would take up room, and the first would take the key along
		}
		if len(r.ring) == mostRemovals {
			delete(r.keys, r.ring[0])
			r.ring = r.ring[1:]
		}
		r.keys[ref.Key] = struct{}{}
		r.ring = append(r.ring, ref.Key)
	}
}

func (r *removals) has(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, has := r.keys[key]
	return has
}

// Unread implements [queue.Absences].
func (k *Keeper) Unread(text string) *queue.Away {
	ref, err := payload.ParseRef(text)
	if err != nil {
		return nil // a damaged row; opening it fails
	}
	s := k.sides[sideKey{ref.Store, payload.Get}]
	if s == nil {
		return nil
	}
	away := s.away.Load()
	if away != nil {
		s.remember(ref)
	}
	return away
}

// Unwritten implements [queue.Absences].
func (k *Keeper) Unwritten() *queue.Away { return k.target.away.Load() }

// Room implements [queue.Absences].
func (k *Keeper) Room() bool { return k.room.has(min(usual, k.room.most/4)) }

// Still implements [queue.Absences].
func (k *Keeper) Still(away *queue.Away) bool {
	s := k.sides[sideKey{away.Store, away.Verb}]
	return s != nil && s.away.Load() != nil
}

func (k *Keeper) wakeWatch() {
	select {
	case k.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// Absent returns which stores are unavailable, and for which operation.
func (k *Keeper) Absent() []queue.Away {
	var all []queue.Away
	for _, store := range k.cfg.Set.Stores() {
		for _, verb := range []payload.Verb{payload.Get, payload.Put} {
			if away := k.sides[sideKey{store, verb}].away.Load(); away != nil {
				all = append(all, *away)
			}
		}
	}
	return all
}
