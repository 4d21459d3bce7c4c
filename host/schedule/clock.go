package schedule

import (
	"time"

	"github.com/jobhost/jobhost/host/scope"
)

// Clock is the time of day, as people set it. It may jump either way.
type Clock interface {
	Now() time.Time
	// Alarm makes an alarm, whose goroutine, if it has one, belongs to the scope.
	Alarm(in *scope.Scope) (Alarm, error)
}

// Alarm rings at a time of day, and whenever the clock was set: however long
// the machine slept, and whatever the clock shows, nothing has to ask again
// and again. One goroutine sets it.
type Alarm interface {
	// Set sets the alarm, in place of what it was set to before; the zero time
	// stands for never. An alarm for the past rings at once.
	Set(at time.Time) error
	// Rings holds a value after the alarm rang. It may ring too often.
	Rings() <-chan struct{}
	// Close ends the alarm.
	Close() error
}

// systemClock is the clock of the operating system.
type systemClock struct{}

// Now returns the time of day, without the reading of the monotonic clock,
// which knows nothing of it.
func (systemClock) Now() time.Time { return time.Now().Round(0) }

// Alarm implements [Clock].
func (systemClock) Alarm(in *scope.Scope) (Alarm, error) { return newAlarm(in) }

// ring leaves a value in a channel for one.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
