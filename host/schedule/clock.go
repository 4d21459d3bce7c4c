package schedule

import (
	"time"

	"github.com/jobhost/jobhost/host/scope"
)

// Clock is the time of day, as set by people. It may jump in both directions.
type Clock interface {
	Now() time.Time
	// Alarm creates an alarm, whose goroutine, if it has one, belongs to the
	// scope.
	Alarm(in *scope.Scope) (Alarm, error)
}

// Alarm rings at a time of day, and whenever the clock was set. So nothing has to
// poll, however long the machine sleeps and whatever the clock shows. One
// goroutine sets it.
type Alarm interface {
	// Set sets the alarm, replacing the previous time; the zero time means never.
	// An alarm for the past rings at once.
	Set(at time.Time) error
	// Rings has a value after the alarm rang. It may ring too often.
	Rings() <-chan struct{}
	// Close ends the alarm.
	Close() error
}

// systemClock is the clock of the operating system.
type systemClock struct{}

// Now returns the time of day, without the monotonic clock reading, which is
// unaffected by setting the clock.
func (systemClock) Now() time.Time { return time.Now().Round(0) }

// Alarm implements [Clock].
func (systemClock) Alarm(in *scope.Scope) (Alarm, error) { return newAlarm(in) }

// ClockOf is a clock that shows what now returns, such as that of a store that hosts share. Nothing says when it is set, so
// its alarms ring once a minute besides.
func ClockOf(now func() time.Time) Clock { return otherClock{now} }

type otherClock struct{ now func() time.Time }

// Now implements [Clock].
func (c otherClock) Now() time.Time { return c.now().Round(0) }

// Alarm implements [Clock].
func (c otherClock) Alarm(*scope.Scope) (Alarm, error) { return newTimerAlarm(c.now), nil }

// ring puts a value into a channel with room for one.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
