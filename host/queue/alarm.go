package queue

import "time"

// alarm calls a function once, at a time that may be changed. The zero alarm is not set.
type alarm[T comparable] struct {
	timer *time.Timer
	at    T // the zero value = it is not set
}

// set sets the alarm to a time, which comes after wait. ring is the same in all calls.
func (a *alarm[T]) set(at T, wait time.Duration, ring func()) {
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, ring)
	} else {
		a.timer.Reset(wait)
	}
}

// stop keeps the alarm from ringing.
func (a *alarm[T]) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
