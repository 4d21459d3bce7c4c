package queuetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// scheduleStore is a store that keeps schedules too; see package schedule.
type scheduleStore interface {
	Schedules(ctx context.Context) ([]record.ScheduleState, error)
}

func (m *model) fire(op *record.Fire, got record.OpResult) (record.OpResult, error) {
	name := op.State.Name
	if m.schedules[name].Version != op.State.Version {
		return m.code(jobhost.CodeConflict), nil
	}
	if op.Forget {
		delete(m.schedules, name)
		return record.OpResult{}, nil
	}
	state := op.State
	state.Version++
	state.Open, state.Waiting = slices.Clone(state.Open), slices.Clone(state.Waiting)
	m.schedules[name] = state
	res := record.OpResult{Fired: make([]record.OpResult, len(op.Jobs))}
	for i, job := range op.Jobs {
		key := m.next
		if i < len(got.Fired) {
			key = got.Fired[i].Key
		}
		var err error
		if res.Fired[i], err = m.submit(job, key); err != nil {
			return record.OpResult{}, err
		}
	}
	return res, nil
}

// Schedules returns the states of all schedules, by name.
func (s *Memory) Schedules(ctx context.Context) (out []record.ScheduleState, err error) {
	err = s.read(ctx, func() error {
		out = slices.SortedFunc(maps.Values(s.model.schedules), func(a, b record.ScheduleState) int {
			return strings.Compare(a.Name, b.Name)
		})
		return nil
	})
	return out, err
}

// schedules returns the states that a store keeps.
func (s store) schedules() []record.ScheduleState {
	s.t.Helper()
	keeper, ok := s.Store.(scheduleStore)
	if !ok {
		s.t.Fatalf("%T keeps no schedules", s.Store)
	}
	states, err := keeper.Schedules(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return states
}

func testFire(t *testing.T, h Harness) {
	s := open(t, h)
	wantSame(t, "states", len(s.schedules()), 0)
	state := record.ScheduleState{
		Name: "nightly", Timing: "every 1m", Last: epoch, Fired: epoch, LastJob: "b", PausedAt: 7, GoneAt: 8,
		Open: []string{"a", "b"}, Waiting: []record.Millis{epoch + 1, epoch + 2},
	}
	res := s.must(&record.Fire{State: state, Jobs: []*record.JobSpec{spec("a", "w"), full("b", "w")}})
	want := state
	want.Version = 1
	wantSame(t, "states", s.schedules(), []record.ScheduleState{want})
	if len(res.Fired) != 2 || res.Fired[0].Key != s.job("a").Key || res.Fired[1].Key != s.job("b").Key {
		t.Fatalf("unexpected results %+v", res.Fired)
	}
	wantSame(t, "labels", s.job("b").Labels, full("b", "w").Labels)

	// The same again, and one that knows of a later version, change nothing.
	stale, ahead := state, state
	ahead.Version = 2
	for _, state := range []record.ScheduleState{stale, ahead} {
		wantCode(t, s.do(&record.Fire{State: state, Jobs: []*record.JobSpec{spec("c", "w")}})[0].Err, jobhost.CodeConflict)
	}
	wantSame(t, "counts", s.counts(), map[string]record.StatusCounts{"w": {record.Open: 3}})

	// Ids that are taken leave the rest alone.
	other := spec("a", "w", func(s *record.JobSpec) { s.Digest = [16]byte{9} })
	res = s.must(&record.Fire{State: want, Jobs: []*record.JobSpec{other, full("b", "w"), spec("c", "w")}})
	wantCode(t, res.Fired[0].Err, jobhost.CodeConflict)
	if !res.Fired[1].Existing || res.Fired[2].Existing || res.Fired[2].Err != nil {
		t.Fatalf("unexpected results %+v", res.Fired)
	}

	// Empty lists stay empty, over a reopening too.
	s.must(&record.Fire{State: record.ScheduleState{Name: "nightly", Version: 2, Timing: "x"}})
	if h.Reopen != nil {
		s.Store = h.Reopen(t, s.Store)
	}
	wantSame(t, "states", s.schedules(), []record.ScheduleState{{Name: "nightly", Version: 3, Timing: "x"}})

	s.must(&record.Fire{State: record.ScheduleState{Name: "nightly", Version: 3}, Forget: true})
	wantSame(t, "states", len(s.schedules()), 0)
}

// testFireAtOnce wants one of several firings of the same version to win, and
// its job alone to be there.
func testFireAtOnce(t *testing.T, h Harness) {
	s := open(t, h)
	const rounds, rivals = 5, 8
	for version := range int64(rounds) {
		var wins atomic.Int64
		var group sync.WaitGroup
		for rival := range rivals {
			group.Go(func() {
				res, err := commit(s.Store, &record.Fire{
					State: record.ScheduleState{Name: "x", Version: version},
					Jobs:  []*record.JobSpec{spec(fmt.Sprintf("%d-%d", version, rival), "w")},
				})
				if err != nil {
					t.Error(err)
				} else if res[0].Err == nil {
					wins.Add(1)
				}
			})
		}
		group.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d of %d firings of one version were applied", wins.Load(), rivals)
		}
	}
	wantSame(t, "counts", s.counts(), map[string]record.StatusCounts{"w": {record.Open: rounds}})
}
