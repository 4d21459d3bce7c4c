package statetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// Removals are a test of a store that is a companion of a queue: its jobs go with those of the queue, in one
// transaction, which may be undone.
type Removals struct {
	Store state.Store
	// Spoil makes a change that fails, so that all others in its transaction are made again.
	Spoil func()
	// Remove removes a job as the queue does, and fails then if it is to.
	Remove func(id string, fail bool) error
	// Orphans counts the states that are left without their job.
	Orphans func() int64
}

// Hammer lets many follow, set, mark and delete a few jobs, while transactions
// are undone. No follower may be left with states that are gone, nor without those that
// are there, nor write for a job through what followed it before it was deleted.
func (r Removals) Hammer(t *testing.T) {
	h := &removing{T: t, Removals: r}
	for _, h.removes = range []bool{true, false} {
		var wg sync.WaitGroup
		for seed := range uint64(8) {
			wg.Go(func() { h.run(rand.New(rand.NewPCG(seed, 5))) })
		}
		wg.Wait()
		if h.removes {
			h.unmark()
		}
	}
	h.check()
}

type removing struct {
	*testing.T
	Removals
	removes bool

	mu       sync.Mutex // protects watchers
	watchers []follower
}

// follower is who follows to the end.
type follower struct {
	*Watcher
	job state.Job
	src state.Source
}

func (h *removing) run(rng *rand.Rand) {
	for range 100 {
		j := state.Job{ID: fmt.Sprint("job", rng.IntN(2)), Run: []string{"", "r"}[rng.IntN(2)]}
		w := Watch()
		src, err := h.Store.Open(h.Context(), j, 4, w)
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeConflict {
				h.Errorf("open: %v", err)
			}
			if h.removes {
				h.remove(rng, j, nil)
			}
			continue
		}
		for range rng.IntN(6) {
			asked := state.State{TaskID: rng.IntN(4), Tag: "x", Status: rng.Int32(), SchemaVersion: 1}
			s, err := src.Set(h.Context(), asked)
			if errors.Is(err, state.ErrDeleted) {
				break
			}
			if err != nil {
				h.Errorf("set: %v", err)
			}
			if w.Ended() == nil && w.Get(s.TaskID, s.Tag).Version < s.Version {
				if w.Ended() == nil {
					h.Errorf("version %d was set, and not told", s.Version)
				}
			}
		}
		switch n := rng.IntN(8); {
		case n == 0 && h.removes:
			h.remove(rng, j, src)
		case n == 1:
			h.Spoil()
		}
		if rng.IntN(4) > 0 {
			_ = src.Close()
			continue
		}
		h.mu.Lock()
		h.watchers = append(h.watchers, follower{w, j, src})
		h.mu.Unlock()
	}
}

// remove removes a job that a source follows, if there is one.
func (h *removing) remove(rng *rand.Rand, j state.Job, src state.Source) {
	var err error
	switch rng.IntN(4) {
	case 0:
		err = h.Store.Mark(h.Context(), j)
	case 1:
		err = h.Store.Delete(h.Context(), j)
	default:
		fail := rng.IntN(2) == 0
		if err = h.Remove(j.ID, fail); fail {
			if err == nil {
				h.Error("a spoiled change was made")
			}
			return
		}
	}
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
		h.Errorf("remove: %v", err)
	}
	if src == nil {
		return
	}
	if s, err := src.Set(h.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
		h.Errorf("set after removal: %+v, %v", s, err)
	}
}

// unmark deletes what is marked.
func (h *removing) unmark() {
	list, err := h.Store.Jobs(h.Context(), "", 100)
	if err != nil {
		h.Fatal(err)
	}
	for _, info := range list {
		if !info.DeletedAt.IsZero() {
			if err := h.Store.Delete(h.Context(), info.Job); err != nil {
				h.Error(err)
			}
		}
	}
}

// check sees that those who still follow know what is there.
func (h *removing) check() {
	ended := 0
	for _, f := range h.watchers {
		f.Check(h)
		if f.Ended() != nil {
			ended++
			continue
		}
		w := Watch()
		src, err := h.Store.Open(h.Context(), f.job, 0, w)
		if err != nil {
			h.Errorf("%s is followed, and can't be opened: %v", f.job.Key(), err)
			continue
		}
		if got, want := fmt.Sprint(f.States()), fmt.Sprint(w.States()); got != want {
			h.Errorf("a follower knows\n%s, but there is\n%s", got, want)
		}
		_, _ = src.Close(), f.src.Close()
	}
	if ended == 0 || ended == len(h.watchers) {
		h.Errorf("%d of %d followers saw the end", ended, len(h.watchers))
	}
	list, err := h.Store.Jobs(h.Context(), "", 100)
	if err != nil {
		h.Fatal(err)
	}
	for _, info := range list {
		w := Watch()
		src, err := h.Store.Open(h.Context(), info.Job, 0, w)
		if err != nil {
			h.Fatal(err)
		}
		_ = src.Close()
		if len(w.States()) != info.States {
			h.Errorf("%s has %d states, and says %d", info.Key(), len(w.States()), info.States)
		}
	}
	if n := h.Orphans(); n > 0 {
		h.Errorf("%d states are without a job", n)
	}
}
