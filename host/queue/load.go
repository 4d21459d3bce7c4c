package queue

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// lanes are the lanes by the name of their worker. One is added when its worker
// is first known and stays as long as the queue: the lane of a worker that
// was removed is parked, so that whatever is under way (submits, settlements,
// cancels) finds it, and all is in its place when the worker comes back.
type lanes struct {
	// opening is held for writing while a lane is filled from the store, and
	// for reading by every change that looks its lane up by name when it is
	// durable: so such a change is either in what the lane reads or comes to
	// the lane, and never both or neither. Submits and settlements need none
	// of this: they hold their lane.
	opening sync.RWMutex
	byName  atomic.Pointer[map[string]*lane] // replaced by a copy, under opening
}

// all returns the lanes; the map is never changed.
func (ls *lanes) all() map[string]*lane {
	if m := ls.byName.Load(); m != nil {
		return *m
	}
	return nil
}

// of returns the lane of a worker; nil if it was never heard of.
func (ls *lanes) of(worker string) *lane { return ls.all()[worker] }

// loaded returns the names of the workers that are loaded, sorted.
func (ls *lanes) loaded() []string {
	var names []string
	for name, l := range ls.all() {
		if !l.parked.Load() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Changes that hold opening take milliseconds, unless the disk is full.
const (
	openingTries = 100
	openingWait  = 5 * time.Millisecond
)

// open locks opening for writing, or returns why a change that holds it waits for room. While
// Lock waits no goroutine gets the lock for reading, and settlements couldn't even be handed over; so it
// is only called when the disk has been seen to have room for a while.
func (ls *lanes) open(ctx context.Context, full func() error) error {
	for range openingTries {
		if ls.opening.TryLock() {
			return nil
		}
		if err := full(); err != nil {
			return err
		}
		if !pause(ctx, openingWait) {
			return context.Cause(ctx)
		}
	}
	ls.opening.Lock()
	return nil
}

// Prepare claims the open tasks of a worker that the queue doesn't know yet.
// They stay held until [Queue.Put], but end as the worker says if their deadline
// passes. Nothing happens if it is known. It is unavailable while a change waits for room
// on the disk that may bring jobs to any lane.
func (q *Queue) Prepare(ctx context.Context, w Worker) error {
	worker := w.Name
	if q.lanes.of(worker) != nil {
		return nil
	}
	if err := q.lanes.open(ctx, q.full); err != nil {
		return fmt.Errorf("claim the tasks of %s: %w", worker, err)
	}
	defer q.lanes.opening.Unlock()
	if q.lanes.of(worker) != nil {
		return nil
	}
	l := newLane(q, worker)
	l.worker.Store(&w)
	l.order.LimitPerKey(w.PerKey)
	err := l.remember(ctx)
	if err == nil {
		err = l.claimAll(ctx)
	}
	if err != nil {
		l.stop()
		return fmt.Errorf("claim the tasks of %s: %w", worker, err)
	}
	all := maps.Clone(q.lanes.all())
	if all == nil {
		all = map[string]*lane{}
	}
	all[worker] = l
	q.lanes.byName.Store(&all)
	if q.closed.Load() { // [Queue.Stop] may have missed it
		l.stop()
	}
	return nil
}

// prepareMissing prepares the workers that have open tasks and are not there, so
// that deadlines hold for those tasks too.
func (q *Queue) prepareMissing(ctx context.Context) error {
	counts, err := q.store.Counts(ctx)
	if err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	for worker, c := range counts {
		if c[record.Open] == 0 {
			continue
		}
		missing := Worker{Name: worker, Capacity: math.MaxInt, Retention: jobhost.DefaultRetention()}
		if err := q.Prepare(ctx, missing); err != nil {
			return err
		}
	}
	return nil
}

// Put loads a worker that was prepared, or changes the settings of one that is
// loaded: they hold for everything that is admitted, and for every attempt that
// ends, from now on. What was held goes on.
func (q *Queue) Put(w Worker) {
	l := q.lanes.of(w.Name)
	if l.put(w) {
		q.noteRated(w.Name)
	}
}

// put is [Queue.Put]. It reports whether that the worker has a rate is to be noted.
func (l *lane) put(w Worker) (rated bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker.Store(&w)
	l.parked.Store(false)
	l.rate.Set(w.Rate, w.RateBurst, l.q.clock.now())
	rated = l.resumeRateLocked()
	l.order.LimitPerKey(w.PerKey)
	l.breakLocked(w.Breaker)
	l.lookAgainLocked() // a breaker may have another policy
	l.pumpLocked()
	return rated
}

// Park holds the tasks of a worker that was removed. When it returns no more
// of them are handed out; those that run are settled as usual. Submits are
// answered as if the worker had never been.
func (q *Queue) Park(worker string) {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked.Store(true)
	l.bodies.clear()
}

// stillRunning is how many tasks of a lane run, if there is a lane.
func (l *lane) stillRunning() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}
