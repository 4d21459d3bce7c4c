package hostcall

import "time"

// progressEvery is the minimum interval between two reports that are passed on.
const progressEvery = 100 * time.Millisecond

// progress is the last report, if it was held back, and when one was last passed on.
type progress struct {
	done, total int64
	held        bool
	passed      time.Time
}

// Progress reports how far the attempt is: done of total, total 0 = unknown.
// Reports within a tenth of a second of the previous one are held back, and the
// newest of them is passed on with the next one or by Flush. Negative numbers
// are ignored.
func (a *Attempt) Progress(done, total int64) {
	if a.Services == nil || done < 0 || total < 0 {
		return
	}
	p := &a.progress
	now := time.Now()
	if !p.passed.IsZero() && now.Sub(p.passed) < progressEvery {
		p.done, p.total, p.held = done, total, true
		return
	}
	p.passed, p.held = now, false
	a.Services.Progress(a, done, total)
}

// Flush passes on progress that was held back. The engine calls it when the
// guest has ended.
func (a *Attempt) Flush() {
	if p := &a.progress; p.held {
		p.held = false
		a.Services.Progress(a, p.done, p.total)
	}
}
