package schedule

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// grace is how late a tick may be seen and still count as seen in time: a
// restart of the host takes seconds.
const grace = time.Minute

// Outcome is what became of a tick.
type Outcome string

// The outcomes.
const (
	Fired     Outcome = "fired"     // it made a job
	CaughtUp  Outcome = "caught_up" // it made a job, more than a minute late
	Queued    Outcome = "queued"    // it waits for the end of a job, and will have another outcome too
	Skipped   Outcome = "skipped"   // a job was open
	Missed    Outcome = "missed"    // nobody was there to see it
	Duplicate Outcome = "duplicate" // a job with its id was there already
	Refused   Outcome = "refused"   // its job was not admitted; it is tried again
	Manual    Outcome = "manual"    // somebody asked for a job: there is no tick
)

// decision is what is to be done about ticks.
type decision struct {
	state    record.ScheduleState // afterwards, but for the jobs
	fire     []time.Time          // ticks to make jobs of, oldest first
	verdicts []verdict            // on other ticks
	more     bool                 // other ticks are left to be decided
}

// verdict says what became of ticks that make no job now.
type verdict struct {
	outcome Outcome
	tick    time.Time // zero with Missed
	count   int
}

// empty reports whether there is nothing to do.
func (d *decision) empty() bool { return len(d.fire) == 0 && len(d.verdicts) == 0 }

// decide tells what becomes of the ticks up to now. It depends on nothing but
// what it is given, so the same question has the same answer after a restart.
// open says whether a job of the schedule is open, and most how many jobs may
// be made; when there are more, the ticks after them stay undecided.
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

// catchUp returns the due ticks that are not to be missed, and notes those
// that are. They are at most as many as the policy allows.
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

// placer finds the place of ticks, one after the other.
type placer struct {
	s    *Schedule
	d    *decision
	open bool // a job is open, or will be
	most int  // jobs that may be made
}

// place decides on a tick, a new one or one that has waited. It returns false
// when it can't yet, since no more jobs may be made.
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
