package queue

import (
	"time"

	"github.com/jobhost/jobhost"
)

// rate keeps to a rate without a counter that somebody would have to fill: it
// holds when the next task would begin if all came evenly, and lets each come a
// burst earlier than that. It is the generic cell rate algorithm of ATM Forum's
// Traffic Management 4.0, there for cells of a network.
type rate struct {
	every, early time.Duration
	even         time.Time
}

// set changes the rate, and leaves alone what has begun. A burst of 0 is what
// comes in a tenth of a second.
func (r *rate) set(to jobhost.Rate, burst int) {
	r.every = to.Every()
	if burst == 0 && r.every > 0 {
		burst = int(100 * time.Millisecond / r.every)
	}
	r.early = r.every * time.Duration(max(burst, 1)-1)
}

// next is when a task may begin; a time that has passed means at once.
func (r *rate) next() time.Time {
	if r.every == 0 {
		return time.Time{}
	}
	return r.even.Add(-r.early)
}

// take notes that a task begins.
func (r *rate) take(now time.Time) {
	if r.every == 0 {
		return
	}
	if now.After(r.even) {
		r.even = now
	}
	r.even = r.even.Add(r.every)
}
