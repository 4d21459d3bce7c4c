package op

import "time"

// After returns an op that is ready d after it was performed, and results in the
// time. Each performing, even of the same Op, starts its own timer. If d isn't
// positive the op is always ready.
func After(d time.Duration) Op[time.Time] {
	return New(
		func() (now time.Time, ok bool, err error) {
			if d > 0 {
				return now, false, nil
			}
			return time.Now(), true, nil
		},
		func(w *Waiter[time.Time]) { startTimer(w, d) },
	)
}

// At returns an op that is ready from t on, and results in the time. A t with a
// monotonic reading, such as time.Now().Add(d), isn't affected by changes of the
// wall clock.
func At(t time.Time) Op[time.Time] {
	return New(
		func() (time.Time, bool, error) {
			now := time.Now()
			return now, !now.Before(t), nil
		},
		func(w *Waiter[time.Time]) { startTimer(w, time.Until(t)) },
	)
}

func startTimer(w *Waiter[time.Time], d time.Duration) {
	timer := time.AfterFunc(d, func() { w.Complete(time.Now(), nil) })
	w.OnAbort(func() { timer.Stop() })
}
