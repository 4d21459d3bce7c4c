package schedule

import "time"

// longest is how long a timer runs before the clock is checked again: Go's
// timers don't notice that the clock was set, nor that the machine slept.
const longest = time.Minute

// timerAlarm is the alarm for operating systems without one, and for clocks that
// aren't the machine's.
type timerAlarm struct {
	now   func() time.Time
	bell  chan struct{}
	timer *time.Timer
}

func newTimerAlarm(now func() time.Time) *timerAlarm {
	a := &timerAlarm{now: now, bell: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(longest, func() { ring(a.bell) })
	return a
}

// Set implements [Alarm].
func (a *timerAlarm) Set(at time.Time) error {
	a.timer.Stop()
	if !at.IsZero() {
		a.timer.Reset(min(at.Sub(a.now()), longest))
	}
	return nil
}

// Rings implements [Alarm].
func (a *timerAlarm) Rings() <-chan struct{} { return a.bell }

// Close implements [Alarm].
func (a *timerAlarm) Close() error {
	a.timer.Stop()
	return nil
}
