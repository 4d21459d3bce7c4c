package statetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// Acknowledged is what a store has acknowledged. It is for tests that do something drastic to one: work with it,
// crash it, and check what is there when it is opened again.
type Acknowledged struct {
	mu   sync.Mutex // protects jobs
	jobs map[state.Job]*known
}

// known is what a job may have, used by one goroutine in each life.
type known struct {
	acked   map[string]state.State // and not replaced
	open    []state.State          // begun, and not acknowledged
	deleted bool                   // it was, since then nothing was written
	maybe   bool                   // a deletion has begun, and was not acknowledged
}

// of returns what is known of a job.
func (a *Acknowledged) of(job state.Job) *known {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jobs == nil {
		a.jobs = map[state.Job]*known{}
	}
	k := a.jobs[job]
	if k == nil {
		k = &known{acked: map[string]state.State{}}
		a.jobs[job] = k
	}
	return k
}

// Work lets goroutines write and delete until each has done n things or the store
// fails. Jobs live on from one life of the store to the next.
func (a *Acknowledged) Work(t *testing.T, s state.Store, n int, seed uint64) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for range n {
				job := state.Job{ID: fmt.Sprintf("job-%d-%d", g, rng.IntN(3))}
				if a.step(t, s, job, rng) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// step does a thing with a job that no other goroutine touches.
func (a *Acknowledged) step(t *testing.T, s state.Store, job state.Job, rng *rand.Rand) error {
	k := a.of(job)
	if len(k.open) > 0 || k.maybe {
		return nil // settled by the next check
	}
	if rng.IntN(6) == 0 {
		k.maybe = true
		err := s.Delete(t.Context(), job)
		if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
			return err
		}
		if err != nil && len(k.acked) > 0 {
			t.Errorf("delete %s, which has %v: %v", job.Key(), k.acked, err)
		}
		k.maybe, k.deleted = false, true
		clear(k.acked)
		return nil
	}
	src, err := s.Open(t.Context(), job, 3, Watch())
	if err != nil {
		return err
	}
	defer src.Close()
	for range 1 + rng.IntN(4) {
		asked := state.State{
			JobID: job.ID, TaskID: rng.IntN(3), Tag: fmt.Sprint("tag", rng.IntN(2)), Status: rng.Int32(), SchemaVersion: 1,
			EventID: fmt.Sprint("e", rng.Int64()),
			Payload: fmt.Appendf(nil, `{"text":"%0*d"}`, 1+rng.IntN(9000), 1),
		}
		k.open = append(k.open, asked)
		stored, err := src.Set(t.Context(), asked)
		if err != nil {
			return err
		}
		if last := k.acked[keyOf(asked)]; stored.Version != last.Version+1 {
			t.Errorf("version %d of %s comes after %d", stored.Version, keyOf(asked), last.Version)
		}
		k.open, k.deleted = nil, false
		k.acked[keyOf(stored)] = stored
	}
	return nil
}

// Check compares what the store holds with what it acknowledged, and goes on from
// what it holds.
func (a *Acknowledged) Check(t *testing.T, s state.Store) {
	t.Helper()
	infos := map[state.Job]state.Info{}
	list, err := s.Jobs(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		infos[info.Job] = info
	}
	for job, k := range a.jobs {
		there := map[string]state.State{}
		if info, ok := infos[job]; ok {
			w := Watch()
			src, err := s.Open(t.Context(), job, 0, w)
			if err != nil {
				t.Fatal(err)
			}
			_ = src.Close()
			there = w.States()
			if info.States != len(there) || len(there) == 0 {
				t.Fatalf("%s has %d states, and says %d", job.Key(), len(there), info.States)
			}
		}
		k.check(t, job, there)
		k.acked, k.open, k.maybe = there, nil, false
		k.deleted = len(there) == 0
	}
}

func (k *known) check(t *testing.T, job state.Job, there map[string]state.State) {
	t.Helper()
	if len(there) == 0 && (k.maybe || len(k.acked) == 0) {
		return
	}
	if k.deleted && len(there) > len(k.open) {
		t.Fatalf("%s was deleted, and has %v", job.Key(), there)
	}
	for key, acked := range k.acked {
		got := there[key]
		if got.EventID == acked.EventID {
			if fmt.Sprint(got) != fmt.Sprint(acked) {
				t.Fatalf("%s: there is %+v, acknowledged was %+v", job.Key(), got, acked)
			}
			continue
		}
		if !k.begun(got) || got.Version != acked.Version+1 {
			t.Fatalf("%s: there is %+v, the last that was acknowledged is %+v", job.Key(), got, acked)
		}
	}
	for key, got := range there {
		if _, ok := k.acked[key]; !ok && (!k.begun(got) || got.Version != 1) {
			t.Fatalf("%s: there is %+v, which was never set", job.Key(), got)
		}
	}
}

// begun reports whether a state was asked for, and not acknowledged.
func (k *known) begun(got state.State) bool {
	for _, s := range k.open {
		if s.EventID == got.EventID && s.Status == got.Status && string(s.Payload) == string(got.Payload) {
			return true
		}
	}
	return false
}
