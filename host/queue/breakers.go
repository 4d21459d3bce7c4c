package queue

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/breaker"
	"github.com/jobhost/jobhost/internal/logkey"
)

// noteBreaker is the prefix of the notes of breakers that are not closed; the
// key follows. The text is when the breaker is open until, in milliseconds.
const noteBreaker = "breaker/"

// breakers are the breakers of a queue by their keys.
type breakers struct {
	mu    sync.Mutex // protects byKey and notes
	byKey map[string]*sharedBreaker
	notes map[string]string // by key: what was noted of those that are not in byKey
}

// remember takes over what was noted.
func (bs *breakers) remember(notes map[string]string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.notes = map[string]string{}
	for name, text := range notes {
		if key, of := strings.CutPrefix(name, noteBreaker); of && bs.byKey[key] == nil {
			bs.notes[key] = text
		}
	}
}

// join returns the breaker of a policy, which holds for it from now on, as one
// of the lane's. One that is new is as it was noted.
func (bs *breakers) join(policy jobhost.BreakerPolicy, l *lane) *sharedBreaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.ofLocked(policy)
	b.SetPolicy(policy)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes[l] = struct{}{}
	return b
}

// joinJobs is join for a policy that jobs bring along; if a worker has the
// breaker its policy holds.
func (bs *breakers) joinJobs(policy jobhost.BreakerPolicy, l *lane) *sharedBreaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.ofLocked(policy)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lanes) == 0 {
		b.SetPolicy(policy)
	}
	b.jobLanes[l] = struct{}{}
	return b
}

// ofLocked returns the breaker of a policy's key.
func (bs *breakers) ofLocked(policy jobhost.BreakerPolicy) *sharedBreaker {
	if b := bs.byKey[policy.Key]; b != nil {
		return b
	}
	b := &sharedBreaker{
		Breaker: breaker.New(policy), key: policy.Key, lanes: map[*lane]struct{}{}, jobLanes: map[*lane]struct{}{},
	}
	if text, noted := bs.notes[policy.Key]; noted {
		until, _ := strconv.ParseInt(text, 10, 64) // what can't be read was open until 1970
		b.Breaker, b.saved = breaker.Restore(policy, record.Millis(until).Time()), text
		delete(bs.notes, policy.Key)
	}
	if bs.byKey == nil {
		bs.byKey = map[string]*sharedBreaker{}
	}
	bs.byKey[policy.Key] = b
	return b
}

// mostBreakers is how many are kept before those are looked for that nobody uses and
// that have only counted some failures.
const mostBreakers = 256

// leave is for a lane without tasks, for now, of jobs that have a breaker. A breaker that
// nobody uses is forgotten, unless it has counted failures: there may be more of
// them when a task is tried again. Where an open one stands remains.
func (bs *breakers) leave(of *jobBreaker) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := of.sharedBreaker
	b.mu.Lock()
	delete(b.jobLanes, of.lane)
	b.mu.Unlock()
	switch text, state := b.note(); {
	case b.used():
	case state != jobhost.BreakerClosed:
		delete(bs.byKey, b.key)
		bs.notes[b.key] = text
	case !b.Counts():
		delete(bs.byKey, b.key)
	case len(bs.byKey) > mostBreakers:
		maps.DeleteFunc(bs.byKey, func(_ string, b *sharedBreaker) bool {
			_, state := b.note()
			return state == jobhost.BreakerClosed && !b.used()
		})
	}
}

// used reports whether any lane has the breaker.
func (b *sharedBreaker) used() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lanes)+len(b.jobLanes) > 0
}

// leave takes a lane off its breaker.
func (b *sharedBreaker) leave(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lanes, l)
}

// breakLocked gives the lane the breaker of its worker's policy, or none.
func (l *lane) breakLocked(policy jobhost.BreakerPolicy) {
	if l.breaker != nil && l.breaker.key != policy.Key {
		l.breaker.leave(l)
		l.breaker = nil
	}
	if policy.Key != "" {
		l.breaker = l.q.breakers.join(policy, l)
	}
}

// judge ends a lease's passages of breakers. The caller holds no lane's lock.
func (q *Queue) judge(lease *Lease, v breaker.Verdict) {
	passages := [...]passage{lease.passage, lease.jobPassage}
	lease.passage, lease.jobPassage = passage{}, passage{}
	for _, p := range passages {
		if p.of != nil && p.End(v, q.clock.now()) {
			q.changed(p.of)
		}
	}
}

// changed notes where a breaker stands and lets its lanes look at it.
func (q *Queue) changed(b *sharedBreaker) {
	q.save(b)
	b.mu.Lock()
	lanes := maps.Clone(b.lanes)
	maps.Copy(lanes, b.jobLanes)
	b.mu.Unlock()
	for l := range lanes {
		l.lookAgain()
	}
}

// lookAgain lets a lane find out what breakers hold now.
func (l *lane) lookAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookAgainLocked()
	l.pumpLocked()
}

// save notes where a breaker stands, if that is news. Half open is noted as the
// open that it was: after a restart its time is over too.
func (q *Queue) save(b *sharedBreaker) {
	b.saving.Lock()
	defer b.saving.Unlock()
	text, state := b.note()
	if text == b.saved {
		return
	}
	b.saved = text
	q.cfg.Logger.Warn("circuit breaker has changed", logkey.Breaker, b.key, logkey.State, state)
	q.inflight.Add(1)
	q.store.Commit([]record.Op{&record.Note{Name: noteBreaker + b.key, Text: text}}, func(_ []record.OpResult, err error) {
		defer q.inflight.Done()
		if err != nil {
			q.cfg.Logger.Error("circuit breaker is not noted; a restart may find it as it was before",
				logkey.Breaker, b.key, logkey.Error, err)
		}
	})
}

func (b *sharedBreaker) note() (text string, state jobhost.BreakerState) {
	state, until := b.Stand()
	if state != jobhost.BreakerClosed {
		text = strconv.FormatInt(int64(record.MillisOf(until)), 10)
	}
	return text, state
}

// ResetBreaker closes the breaker of a worker that is loaded, durably. It is a
// conflict when the worker has none.
func (q *Queue) ResetBreaker(ctx context.Context, worker string) error {
	l, err := q.loaded(worker)
	if err != nil {
		return err
	}
	b := l.itsBreaker()
	if b == nil {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "worker", Message: fmt.Sprintf("worker %s has no circuit breaker", worker),
			Hint: "the manifest gives it one in [worker." + worker + ".breaker]",
		}
	}
	b.saving.Lock()
	err = q.commitOne(ctx, &record.Note{Name: noteBreaker + b.key}, func(result record.OpResult) {
		if result.Err == nil {
			b.Reset()
		}
	})
	if err == nil {
		b.saved = ""
	}
	b.saving.Unlock()
	if err != nil {
		return fmt.Errorf("reset breaker %s: %w", b.key, err)
	}
	q.changed(b)
	return nil
}

func (l *lane) itsBreaker() *sharedBreaker {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.breaker
}

// Breaker tells of the breaker of a worker, which must be one of the queue's;
// nil = it has none.
func (q *Queue) Breaker(worker string) *jobhost.BreakerStatus {
	b := q.lanes.of(worker).itsBreaker()
	if b == nil {
		return nil
	}
	status := b.Status(q.clock.now())
	return &status
}

// refusal is the outcome of a task that is to fail since a breaker is open.
func refusal(key string) jobhost.Outcome {
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &jobhost.Failure{
		Code: jobhost.FailBreaker, Category: jobhost.CategorySystem, Severity: jobhost.SeverityWarning,
		Message: "circuit breaker " + key + " is open", Retryable: true,
	}}
}

// heldByBreaker reports whether the lane's breaker holds its tasks.
func (l *lane) heldByBreaker(now time.Time) bool {
	held, _ := l.breaker.Holds(now)
	return held
}
