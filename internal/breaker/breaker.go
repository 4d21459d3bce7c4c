// Package breaker is the state machine of circuit breakers, for tasks that wait
// for one and requests that fail at it. It has no clock and no storage: both
// are up to its user.
package breaker

import (
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// Breaker is a circuit breaker:
//
//	closed ─(failures in a row)─► open ─(timeout)─► half open ─(probes succeed)─► closed
//	                               ▲                    │
//	                               └───(a failure)──────┘
//
// Each change begins another term. An attempt's result counts only in the term
// in which it began: of a hundred that fail together the first few open the
// breaker, and the others don't affect later attempts.
//
// It is safe for concurrent use. No method calls back.
type Breaker struct {
	mu        sync.Mutex // protects everything below
	policy    jobhost.BreakerPolicy
	state     jobhost.BreakerState
	term      int
	failures  int       // consecutive; while closed
	until     time.Time // while open
	probes    int       // currently running; while half-open
	successes int       // while half-open
}

// New returns a breaker that is closed.
func New(policy jobhost.BreakerPolicy) *Breaker {
	return &Breaker{policy: policy, state: jobhost.BreakerClosed}
}

// Restore returns a breaker that is open until a time, continuing a previous one.
func Restore(policy jobhost.BreakerPolicy, until time.Time) *Breaker {
	return &Breaker{policy: policy, state: jobhost.BreakerOpen, until: until}
}

// Verdict is what an attempt's result says about what its worker or request depends on.
type Verdict uint8

// The verdicts.
const (
	None Verdict = iota // it did not begin, was taken back, or is itself at fault
	WentWell
	WentWrong
)

// SetPolicy sets the policy from now on.
func (b *Breaker) SetPolicy(policy jobhost.BreakerPolicy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.policy = policy
}

// Policy returns the current policy.
func (b *Breaker) Policy() jobhost.BreakerPolicy {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.policy
}

// blockedLocked reports whether tasks must wait; until is when they may continue, if that is
// known. An open breaker whose time is over becomes half-open.
func (b *Breaker) blockedLocked(now time.Time) (blocked bool, until time.Time) {
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

func (b *Breaker) becomeLocked(state jobhost.BreakerState) {
	b.state = state
	b.term++
	b.failures, b.probes, b.successes = 0, 0, 0
}

// Holds reports whether tasks wait, and until when if that is known.
func (b *Breaker) Holds(now time.Time) (held bool, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, until = b.blockedLocked(now)
	return held && !b.failsLocked(), until
}

// failsLocked reports whether tasks fail rather than wait.
func (b *Breaker) failsLocked() bool {
	return b.state == jobhost.BreakerOpen && b.policy.WhenOpen == jobhost.FailWhenOpen
}

// Pass lets one task through: as a probe if the breaker is half-open, or to be
// refused if tasks are to fail. ok is false if it must wait.
func (b *Breaker) Pass(now time.Time) (p Passage, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	blocked, _ := b.blockedLocked(now)
	switch {
	case b.failsLocked():
		return Passage{Refused: true}, true
	case blocked:
		return Passage{}, false
	}
	if b.state == jobhost.BreakerHalfOpen {
		b.probes++
	}
	return Passage{breaker: b, term: b.term}, true
}

// Passage is the right to judge the breaker that was passed. The zero value
// belongs to no breaker.
type Passage struct {
	breaker *Breaker // nil = there is none to judge
	term    int
	Refused bool // the task that passed must fail at once
}

// Judges reports whether the passage has a breaker to judge.
func (p Passage) Judges() bool { return p.breaker != nil }

// End gives the verdict, and reports whether other tasks may have to check the
// breaker again: it changed, or a probe ended. It is called at most once.
func (p Passage) End(v Verdict, now time.Time) (changed bool) {
	b := p.breaker
	if b == nil {
		return false
	}
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
	case WentWrong:
		b.openLocked(now)
	case WentWell:
		if b.successes++; b.successes >= b.policy.Probes {
			b.becomeLocked(jobhost.BreakerClosed)
		}
	}
	return true
}

// countLocked counts consecutive failures.
func (b *Breaker) countLocked(v Verdict, now time.Time) (changed bool) {
	switch v {
	case WentWell:
		b.failures = 0
	case WentWrong:
		if b.failures++; b.failures >= b.policy.Failures {
			b.openLocked(now)
			return true
		}
	}
	return false
}

func (b *Breaker) openLocked(now time.Time) {
	b.becomeLocked(jobhost.BreakerOpen)
	b.until = now.Add(b.policy.Timeout)
}

// Counts reports whether the breaker is closed and has counted failures.
func (b *Breaker) Counts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == jobhost.BreakerClosed && b.failures > 0
}

// Reset closes the breaker, whatever its state.
func (b *Breaker) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.becomeLocked(jobhost.BreakerClosed)
}

// Stand returns the state as of the last change, and until when a breaker that
// isn't closed is, or was, open.
func (b *Breaker) Stand() (state jobhost.BreakerState, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.until
}

// Status describes the breaker.
func (b *Breaker) Status(now time.Time) jobhost.BreakerStatus {
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
