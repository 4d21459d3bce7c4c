package schedule

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// grace is how late a tick may be noticed and still count as on time: a restart
// of the host takes seconds.
const grace = time.Minute

// Outcome is the outcome of a tick.
type Outcome string

// The outcomes.
const (
	Fired     Outcome = "fired"     // it created a job
	CaughtUp  Outcome = "caught_up" // it created a job, more than a minute late
	Queued    Outcome = "queued"    // it waits for the end of a job, and will get another outcome
	Skipped   Outcome = "skipped"   // a job was still open
	Missed    Outcome = "missed"    // the host was not there to notice it
	Duplicate Outcome = "duplicate" // a job with its id existed already
	Refused   Outcome = "refused"   // its job was not admitted; it is retried
	Manual    Outcome = "manual"    // a job was requested by hand: there is no tick
)

// decision is what to do about ticks.
type decision struct {
	state    record.ScheduleState // afterwards, except for the jobs
	fire     []time.Time          // ticks to create jobs for, oldest first
	verdicts []verdict            // on other ticks
	more     bool                 // some ticks are still undecided
}

// verdict is the outcome of ticks that create no job now.
type verdict struct {
	outcome Outcome
	tick    time.Time // zero with Missed
	count   int
}

// empty reports whether there is nothing to do.
func (d *decision) empty() bool { return len(d.fire) == 0 && len(d.verdicts) == 0 }

// decide decides about the ticks up to now. It depends only on its arguments,
// so the same question has the same answer after a restart. open says whether a
// job of the schedule is open, and most how many jobs may be created; ticks
// beyond that stay undecided.
func (s *Schedule) decide(state record.ScheduleState, now time.Time, open bool, most int) decision {
	d := decision{state: state}
	d.state.Waiting = nil
	p := placer{s: s, d: &d, open: open, most: most}
	for _, tick := range state.Waiting {
		if !p.place(tick.Time(), false) {
			d.state.Waiting, d.more = append(d.state.Waiting, tick), true
		}
	}
	for _, tick := range s.catchUp(&d, now) {
		if !p.place(tick, true) {
			d.more = true
			break
		}
		d.state.Last = record.MillisOf(tick)
	}
	return d
}

// catchUp returns the due ticks to be caught up, at most as many as the policy
// allows, and records the others as missed.
func (s *Schedule) catchUp(d *decision, now time.Time) []time.Time {
	keep := 1
	if s.CatchUp == jobhost.CatchUpAll {
		keep = s.CatchUpLimit
	}
	due, missed := s.Timing.due(d.state.Last.Time(), now, keep)
	if len(due) == 0 {
		return nil
	}
	d.state.Last = max(d.state.Last, record.MillisOf(due[0])-1)
	if s.CatchUp == jobhost.CatchUpNone && now.Sub(due[0]) > grace {
		d.state.Last = record.MillisOf(due[0])
		due, missed = nil, missed+1
	}
	if missed > 0 {
		d.verdicts = append(d.verdicts, verdict{outcome: Missed, count: missed})
	}
	return due
}

// placer decides about ticks, one after another.
type placer struct {
	s    *Schedule
	d    *decision
	open bool // a job is open, or will be
	most int  // jobs that may be created
}

// place decides about a tick, a new one or one that has waited. It returns
// false if it can't yet, because no more jobs may be created.
func (p *placer) place(tick time.Time, isNew bool) bool {
	switch {
	case p.s.Overlap == jobhost.OverlapAllow || !p.open:
		if len(p.d.fire) == p.most {
			return false
		}
		p.d.fire = append(p.d.fire, tick)
		p.open = true
	case p.s.Overlap == jobhost.OverlapQueue && len(p.d.state.Waiting) < MaxWaiting:
		p.d.state.Waiting = append(p.d.state.Waiting, record.MillisOf(tick))
		if isNew {
			p.d.verdicts = append(p.d.verdicts, verdict{Queued, tick, 1})
		}
	default:
		p.d.verdicts = append(p.d.verdicts, verdict{Skipped, tick, 1})
	}
	return true
}
