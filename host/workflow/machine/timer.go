package machine

import "time"

func (t *turn) set(timer Timer, at time.Time) {
	t.out.Set = append(t.out.Set, SetTimer{Timer: timer, ID: t.c.TimerID(t.id, timer), At: at})
}

// unset takes a timer back, unless it is the one that is due.
func (t *turn) unset(timer Timer) {
	if t.event.What != TimerDue || t.event.Timer != timer {
		t.out.Unset = append(t.out.Unset, timer)
	}
}
