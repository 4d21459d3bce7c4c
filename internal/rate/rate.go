// Package rate keeps to a rate without a counter that somebody would have to
// fill: it holds when the next would begin if all came evenly, and lets each come a
// burst earlier than that. It is the generic cell rate algorithm of ATM Forum's
// Traffic Management 4.0, there for cells of a network. It has no lock and no
// clock: those are its user's.
package rate

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Rate says when the next may begin. The zero value has no bound.
type Rate struct {
	every, early time.Duration
	even         time.Time
}

// Set changes the rate. A burst of 0 is what comes in a tenth of a second. Those
// that have begun lately count as before, but take as long as they would
// have at the new rate: a higher one holds at once.
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

// Bounded reports whether there is a rate to keep to.
func (r *Rate) Bounded() bool { return r.every > 0 }

// Next is when another may begin; a time that has passed means at once.
func (r *Rate) Next() time.Time {
	if r.every == 0 {
		return time.Time{}
	}
	return r.even.Add(-r.early)
}

// Even is when another would begin if all came evenly.
func (r *Rate) Even() time.Time { return r.even }

// GiveBack notes that one which was taken has not begun.
func (r *Rate) GiveBack() { r.even = r.even.Add(-r.every) }

// Take notes that one begins.
func (r *Rate) Take(now time.Time) {
	if r.every == 0 {
		return
	}
	if now.After(r.even) {
		r.even = now
	}
	r.even = r.even.Add(r.every)
}
