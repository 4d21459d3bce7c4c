package queue

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
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
	notes map[string]string // what was noted when the last lane was filled
}

// remember takes over what was noted.
func (bs *breakers) remember(notes map[string]string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.notes = notes
}

// join returns the breaker of a policy, which holds for it from now on, as one
// of the lane's. One that is new is as it was noted.
func (bs *breakers) join(policy jobhost.BreakerPolicy, l *lane) *sharedBreaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.byKey[policy.Key]
	if b == nil {
		b = &sharedBreaker{Breaker: breaker.New(policy), key: policy.Key, lanes: map[*lane]struct{}{}}
		if text, noted := bs.notes[noteBreaker+policy.Key]; noted {
			until, _ := strconv.ParseInt(text, 10, 64) // what can't be read was open until 1970
			b.Breaker, b.saved = breaker.Restore(policy, Millis(until).Time()), text
		}
		if bs.byKey == nil {
			bs.byKey = map[string]*sharedBreaker{}
		}
		bs.byKey[policy.Key] = b
	}
	b.SetPolicy(policy)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes[l] = struct{}{}
	return b
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

// judge ends a lease's passage of a breaker. The caller holds no lane's lock.
func (q *Queue) judge(lease *Lease, v breaker.Verdict) {
	p := lease.passage
	if p.of == nil {
		return
	}
	lease.passage = passage{}
	if p.End(v, q.clock.now()) {
		q.changed(p.of)
	}
}

// changed notes where a breaker stands and lets its lanes look at it.
func (q *Queue) changed(b *sharedBreaker) {
	q.save(b)
	b.mu.Lock()
	lanes := maps.Clone(b.lanes)
	b.mu.Unlock()
	for l := range lanes {
		l.pump()
	}
}

func (l *lane) pump() {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	q.inflight.add()
	q.store.Commit([]Op{&Note{Name: noteBreaker + b.key, Text: text}}, func(_ []OpResult, err error) {
		defer q.inflight.done()
		if err != nil {
			q.cfg.Logger.Error("circuit breaker is not noted; a restart may find it as it was before",
				logkey.Breaker, b.key, logkey.Error, err)
		}
	})
}

func (b *sharedBreaker) note() (text string, state jobhost.BreakerState) {
	state, until := b.Stand()
	if state != jobhost.BreakerClosed {
		text = strconv.FormatInt(int64(MillisOf(until)), 10)
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
	err = q.commitOne(ctx, &Note{Name: noteBreaker + b.key}, func(result OpResult) {
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
