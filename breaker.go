package jobhost

import (
	"errors"
	"fmt"
	"time"
)

// BreakerPolicy says when a worker's circuit breaker opens and closes. The zero
// value is no breaker.
type BreakerPolicy struct {
	// Key names the breaker; workers with the same key share one.
	Key string
	// Failures is how many in a row open it.
	Failures int
	// Timeout is how long it stays open before some tasks try again.
	Timeout time.Duration
	// Probes is how many of those must succeed, and may run at once, before it closes.
	Probes int
	// WhenOpen says what happens to tasks while it is open.
	WhenOpen WhenOpen
}

// WhenOpen says what happens to tasks while a breaker is open.
type WhenOpen string

// The values of WhenOpen.
const (
	HoldWhenOpen WhenOpen = "hold" // they wait, and no attempt is counted
	FailWhenOpen WhenOpen = "fail" // their attempt fails at once
)

// DefaultBreaker returns the policy of a worker that enables its breaker without
// further settings.
func DefaultBreaker(worker string) BreakerPolicy {
	return BreakerPolicy{Key: worker, Failures: 5, Timeout: time.Minute, Probes: 3, WhenOpen: HoldWhenOpen}
}

// Check reports everything that is wrong with a policy.
func (p *BreakerPolicy) Check() error {
	errs := []error{
		checkText("key", p.Key, MaxKeyBytes),
		inRange("failures", p.Failures, 1, 1000),
		inRange("timeout", Duration(p.Timeout), Duration(time.Millisecond), Duration(24*time.Hour)),
		inRange("probes", p.Probes, 1, 1000),
	}
	if p.Key == "" {
		errs = append(errs, invalid("key", "the breaker has no key"))
	}
	if p.WhenOpen != HoldWhenOpen && p.WhenOpen != FailWhenOpen {
		errs = append(errs, invalid("when_open", "%s is not possible here", clip(string(p.WhenOpen))))
	}
	return errors.Join(errs...)
}

// String describes the policy for people.
func (p *BreakerPolicy) String() string {
	return fmt.Sprintf("%d failures open it for %v, %d successes close it, then %s",
		p.Failures, Duration(p.Timeout), p.Probes, p.WhenOpen)
}

// BreakerState is the state of a breaker.
type BreakerState string

// The states. A breaker goes from closed to open, from there to half-open, and
// from there to either of the others.
const (
	BreakerClosed   BreakerState = "closed"    // tasks run
	BreakerOpen     BreakerState = "open"      // no task runs
	BreakerHalfOpen BreakerState = "half_open" // a few tasks probe
)

// BreakerStatus describes a breaker and its current state.
type BreakerStatus struct {
	Key   string       `json:"key"`
	State BreakerState `json:"state"`
	// Failures counts consecutive failures while the breaker is closed.
	Failures int `json:"failures"`
	// Until is when some tasks try again, while the breaker is open.
	Until *time.Time `json:"until,omitempty"`
	// WhenOpen says what happens to tasks while the breaker is open.
	WhenOpen WhenOpen `json:"when_open"`
}
