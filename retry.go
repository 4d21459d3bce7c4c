package jobhost

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Backoff is how the delay between attempts grows.
type Backoff string

// The backoffs.
const (
	BackoffExponential Backoff = "exponential" // initial · multiplier^(n−2)
	BackoffLinear      Backoff = "linear"      // initial + increment · (n−2)
	BackoffConstant    Backoff = "constant"    // initial
)

// RetryPolicy says how often and when a failed task is retried. n is the number
// of the next attempt, which is at least 2.
type RetryPolicy struct {
	// MaxAttempts includes the first attempt.
	MaxAttempts int
	Backoff     Backoff
	Initial     time.Duration
	// Multiplier is for exponential backoff, at least 1.
	Multiplier float64
	// Increment is for linear backoff.
	Increment time.Duration
	// Max caps the delay before the jitter.
	Max time.Duration
	// Jitter randomizes the delay by ± this fraction of it, 0 to 1.
	Jitter float64
}

// DefaultRetry returns the policy of workers that don't set one.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{
		MaxAttempts: 3,
		Backoff:     BackoffExponential,
		Initial:     time.Second,
		Multiplier:  2,
		Increment:   time.Second,
		Max:         5 * time.Minute,
		Jitter:      0.1,
	}
}

// Delay returns how long to wait before attempt n ≥ 2. random is a number in
// [0,1) that places the delay within the jitter; 0.5 gives it exactly.
func (p RetryPolicy) Delay(n int, random float64) time.Duration {
	step := float64(max(n-2, 0))
	d := float64(p.Initial)
	switch p.Backoff {
	case BackoffLinear:
		d += float64(p.Increment) * step
	case BackoffConstant:
	default:
		d *= math.Pow(p.Multiplier, step)
	}
	d = min(d, float64(p.Max))
	d *= 1 + p.Jitter*(2*random-1)
	return time.Duration(d)
}

// Check reports everything that is wrong with the policy.
func (p RetryPolicy) Check() error {
	errs := []error{inRange("max_attempts", p.MaxAttempts, 1, MaxAttempts)}
	bad := func(field, format string, args ...any) {
		errs = append(errs, invalid(field, format, args...))
	}
	switch p.Backoff {
	case BackoffExponential, BackoffLinear, BackoffConstant:
	default:
		bad("backoff", "%s is not a backoff; use exponential, linear or constant", clip(string(p.Backoff)))
	}
	if p.Initial <= 0 || p.Initial > MaxTimeout {
		bad("initial", "initial %v is not between 1ns and %v", Duration(p.Initial), Duration(MaxTimeout))
	}
	if p.Max < p.Initial || p.Max > 30*MaxTimeout {
		bad("max", "max %v is not between initial (%v) and %v", Duration(p.Max), Duration(p.Initial), Duration(30*MaxTimeout))
	}
	if !(p.Multiplier >= 1 && p.Multiplier <= 100) {
		bad("multiplier", "multiplier %v is not between 1 and 100", p.Multiplier)
	}
	if p.Increment < 0 || p.Increment > MaxTimeout {
		bad("increment", "increment %v is not between 0 and %v", Duration(p.Increment), Duration(MaxTimeout))
	}
	if !(p.Jitter >= 0 && p.Jitter <= 1) {
		bad("jitter", "jitter %v is not between 0 and 1", p.Jitter)
	}
	return errors.Join(errs...)
}

// String describes the policy in one line, for people.
func (p RetryPolicy) String() string {
	return fmt.Sprintf("%d attempts, %s from %v to %v, jitter %g", p.MaxAttempts, p.Backoff, Duration(p.Initial), Duration(p.Max), p.Jitter)
}
