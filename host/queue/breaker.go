package queue

import (
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// breaker is a circuit breaker that one or several lanes share:
//
//	closed ─(failures in a row)─► open ─(timeout)─► half open ─(probes succeed)─► closed
//	                               ▲                    │
//	                               └───(a failure)──────┘
//
// Each change begins another term. What an attempt has to say counts only in
// the term in which it began: of a hundred that fail together the first few
// open the breaker, and the others don't judge those that try it later.
type breaker struct {
	mu        sync.Mutex // protects everything below
	policy    jobhost.BreakerPolicy
	state     jobhost.BreakerState
	term      int
	failures  int       // in a row; closed
	until     time.Time // open
	probes    int       // that run; half open
	successes int       // half open
	lanes     map[*lane]struct{}

	saving sync.Mutex // held from a look at the state to its place in the store; protects saved
	saved  string
}

// verdict is what an attempt says of what its worker depends on.
type verdict uint8

const (
	noVerdict verdict = iota // it was not begun, or taken back, or its job is at fault
	wentWell
	wentWrong
)

// verdictOf is what an outcome says. Input that can never succeed, and a "no" by
// the worker's own rules, are about the job and nothing else.
func verdictOf(o *jobhost.Outcome) verdict {
	switch {
	case o.Kind == jobhost.OutcomeSucceeded:
		return wentWell
	case o.Kind == jobhost.OutcomeFailed && o.Failure.Category.Retryable():
		return wentWrong
	}
	return noVerdict
}

// blockedLocked reports whether tasks must wait; until is when they may go on,
// if that is known. A breaker whose time is over is half open from then on.
func (b *breaker) blockedLocked(now time.Time) (blocked bool, until time.Time) {
	if b.state == jobhost.BreakerOpen && !now.Before(b.until) {
		b.becomeLocked(jobhost.BreakerHalfOpen)
	}
	switch b.state {
	case jobhost.BreakerOpen:
		return true, b.until
	case jobhost.BreakerHalfOpen:
		return b.probes >= b.policy.Probes, time.Time{}
	}
	return false, time.Time{}
}

func (b *breaker) becomeLocked(state jobhost.BreakerState) {
	b.state = state
	b.term++
	b.failures, b.probes, b.successes = 0, 0, 0
}

// holds reports whether tasks wait, and until when if that is known.
func (b *breaker) holds(now time.Time) (held bool, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, until = b.blockedLocked(now)
	return held && !b.failsLocked(), until
}

// failsLocked reports whether tasks fail rather than wait.
func (b *breaker) failsLocked() bool {
	return b.state == jobhost.BreakerOpen && b.policy.WhenOpen == jobhost.FailWhenOpen
}

// pass lets a task through: as a probe if the breaker is half open, and in order
// to fail if that is what is done with it. ok is false when it must wait.
func (b *breaker) pass(now time.Time) (p passage, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	blocked, _ := b.blockedLocked(now)
	switch {
	case b.failsLocked():
		return passage{refused: true}, true
	case blocked:
		return passage{}, false
	}
	if b.state == jobhost.BreakerHalfOpen {
		b.probes++
	}
	return passage{breaker: b, term: b.term}, true
}

// passage is the right to judge the breaker that a task passed.
type passage struct {
	breaker *breaker // nil = it has none
	term    int
	refused bool // the attempt is to fail at once
}

// end gives the verdict, and reports whether others may have to look at the
// breaker again: it changed, or a probe ended.
func (p passage) end(v verdict, now time.Time) (changed bool) {
	b := p.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.term != b.term {
		return false
	}
	if b.state == jobhost.BreakerClosed {
		return b.countLocked(v, now)
	}
	b.probes--
	switch v {
	case wentWrong:
		b.openLocked(now)
	case wentWell:
		if b.successes++; b.successes >= b.policy.Probes {
			b.becomeLocked(jobhost.BreakerClosed)
		}
	}
	return true
}

// countLocked counts failures in a row.
func (b *breaker) countLocked(v verdict, now time.Time) (changed bool) {
	switch v {
	case wentWell:
		b.failures = 0
	case wentWrong:
		if b.failures++; b.failures >= b.policy.Failures {
			b.openLocked(now)
			return true
		}
	}
	return false
}

func (b *breaker) openLocked(now time.Time) {
	b.becomeLocked(jobhost.BreakerOpen)
	b.until = now.Add(b.policy.Timeout)
}

// reset closes the breaker, whatever it was.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.becomeLocked(jobhost.BreakerClosed)
}

// status tells of the breaker.
func (b *breaker) status(now time.Time) jobhost.BreakerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blockedLocked(now) // its time may be over
	s := jobhost.BreakerStatus{Key: b.policy.Key, State: b.state, Failures: b.failures, WhenOpen: b.policy.WhenOpen}
	if b.state == jobhost.BreakerOpen {
		until := b.until.UTC()
		s.Until = &until
	}
	return s
}
