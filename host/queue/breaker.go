package queue

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/breaker"
	"github.com/jobhost/jobhost/internal/logkey"
)

// sharedBreaker is a circuit breaker that workers and jobs of one or several lanes share.
type sharedBreaker struct {
	*breaker.Breaker
	key string

	mu       sync.Mutex         // protects lanes and jobLanes
	lanes    map[*lane]struct{} // of workers that have it
	jobLanes map[*lane]struct{} // with tasks of jobs that have it

	saving sync.Mutex // held from a look at the state to its place in the store; protects saved
	saved  string
}

// passage is a task's passage of a breaker. The zero passage passed none.
type passage struct {
	breaker.Passage
	of *sharedBreaker // the breaker to judge; nil = none
}

// verdictOf is what an outcome says. Input that can never succeed, and a "no" by
// the worker's own rules, are about the job and nothing else.
func verdictOf(o *jobhost.Outcome) breaker.Verdict {
	switch {
	case o.Kind == jobhost.OutcomeSucceeded:
		return breaker.WentWell
	case o.Kind == jobhost.OutcomeFailed && o.Failure.Category.Retryable():
		return breaker.WentWrong
	}
	return breaker.None
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
func (bs *breakers) judge(lease *Lease, v breaker.Verdict) {
	passages := [...]passage{lease.passage, lease.jobPassage}
	lease.passage, lease.jobPassage = passage{}, passage{}
	for _, p := range passages {
		if p.of != nil && p.End(v, bs.q.clock.now()) {
			bs.changed(p.of)
		}
	}
}

// changed notes where a breaker stands and lets its lanes look at it.
func (bs *breakers) changed(b *sharedBreaker) {
	bs.save(b)
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

// save notes where a breaker stands, if that has changed. Half open is noted as the
// open that it was: after a restart its time is over too.
func (bs *breakers) save(b *sharedBreaker) {
	b.saving.Lock()
	defer b.saving.Unlock()
	text, state := b.note()
	if text == b.saved {
		return
	}
	b.saved = text
	bs.q.cfg.Logger.Warn("circuit breaker has changed", logkey.Breaker, b.key, logkey.State, state)
	bs.q.inflight.Add(1)
	bs.q.store.Commit([]record.Op{&record.Note{Name: noteBreaker + b.key, Text: text}}, func(_ []record.OpResult, err error) {
		defer bs.q.inflight.Done()
		if err != nil {
			bs.q.cfg.Logger.Error("circuit breaker is not noted; a restart may find it as it was before",
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
