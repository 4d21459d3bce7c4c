// Package rate enforces a rate without a counter that has to be refilled: it keeps
// the time at which the next one would begin if all came evenly, and lets each come
// earlier than that by up to a burst. It is the generic cell rate algorithm of ATM
// Forum's Traffic Management 4.0, which applies it to network cells. It has no lock
// and no clock: both are up to its user.
package rate

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Rate says when the next one may begin. The zero value has no limit.
type Rate struct {
	every, early time.Duration
	even         time.Time
}

// Set changes the rate. A burst of 0 is as many as the rate allows in a tenth of
// a second. Those that have begun recently still count, but are charged at the
// new rate, so that a higher rate applies at once.
func (r *Rate) Set(to jobhost.Rate, burst int, now time.Time) {
	before, every := r.every, to.Every()
	if burst == 0 && every > 0 {
		burst = int(100 * time.Millisecond / every)
	}
	r.every, r.early = every, every*time.Duration(max(burst, 1)-1)
	if owed := r.even.Sub(now); owed > 0 && before > 0 {
		owed = time.Duration(float64(owed) / float64(before) * float64(every))
		r.even = now.Add(min(owed, r.early+every))
	}
}

// Exhaust records that as many have begun as may at once: it isn't known how many have.
func (r *Rate) Exhaust(now time.Time) { r.even = now.Add(r.early + r.every) }

// Resume continues a rate of which [Rate.Even] was known.
func (r *Rate) Resume(even, now time.Time) {
	r.Exhaust(now)
	if even.Before(r.even) {
		r.even = even
	}
}

// Bounded reports whether there is a rate limit.
func (r *Rate) Bounded() bool { return r.every > 0 }

// Next returns when another one may begin; a time in the past means at once.
func (r *Rate) Next() time.Time {
	if r.every == 0 {
		return time.Time{}
	}
	return r.even.Add(-r.early)
}

// Even returns when another one would begin if all came evenly.
func (r *Rate) Even() time.Time { return r.even }

// GiveBack records that one which was taken has not begun.
func (r *Rate) GiveBack() { r.even = r.even.Add(-r.every) }

// Take records that one begins.
func (r *Rate) Take(now time.Time) {
	if r.every == 0 {
		return
	}
	if now.After(r.even) {
		r.even = now
	}
	r.even = r.even.Add(r.every)
}
