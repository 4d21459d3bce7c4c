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

// side is one of the two things that a store is there for. One on a full disk can be
// read and takes nothing.
type side struct {
	store string
	verb  payload.Verb               // [payload.Get] or [payload.Put]
	away  atomic.Pointer[queue.Away] // nil = it works, as far as is known

	// returned says that it is back and that its tasks don't know yet.
	returned atomic.Bool

	mu     sync.Mutex    // protects probes
	probes []payload.Ref // objects that tasks wait for, the newest last

	// Only the watch has these.
	wait time.Duration // until the next probe, as long as it is away
	next time.Time     // of the next probe
	back time.Time     // when it came back last
}

// mostProbes is how many objects of a store are remembered to be tried. Several, so
// that one which can't be read is not taken for all.
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

// remember notes an object that the side may be tried with.
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

// verdict is met for a call that was made with patience.
func (k *Keeper) verdict(p *patience, verb payload.Verb, ref payload.Ref, err error) error {
	gaveUp, err := p.end(err)
	if gaveUp {
		return err
	}
	return k.met(verb, ref, err)
}

// met judges a store by what a call of it has come to, whose own context has not
// ended. It returns the error as one that says whose it is.
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

// works notes that a store does what it is asked for.
func (k *Keeper) works(s *side) {
	away := s.away.Load()
	if away == nil || !s.away.CompareAndSwap(away, nil) {
		return
	}
	k.cfg.Logger.Info("payload store is back", logkey.Payloads, s.store, logkey.Verb, s.verb, logkey.Duration, time.Since(away.Since))
	k.cfg.Away(s.store, s.verb, false)
	s.returned.Store(true)
	k.wakeWatch() // which tells of it: the caller may hold locks
}

// young reports whether an object is so young that its store may not show it yet.
func (k *Keeper) young(ref payload.Ref) bool {
	made, ok := payload.KeyTime(ref.Key)
	return ok && time.Since(made) < k.cfg.YoungFor && !k.removed.has(ref.Key)
}

// removals are the objects that this process has removed lately: those are gone.
type removals struct {
	mu   sync.Mutex // protects keys and ring
	keys map[string]struct{}
	ring []string
}

// mostRemovals bounds them; one that is forgotten is looked for again, as long as it is young.
const mostRemovals = 4096

func (r *removals) add(refs []payload.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	for _, ref := range refs {
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

// Absent returns which stores are away, and for what.
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
