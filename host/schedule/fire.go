package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// A tick whose job is refused is retried after a pause that doubles.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Limits of one firing.
const (
	maxJobs  = 100
	maxBytes = 4 << 20 // of payloads
)

// attempt is a firing in progress.
type attempt struct {
	entry    *entry
	decision decision
	now      time.Time
	single   bool // at most one job
}

// fireDue fires what is due and returns when to look again; the zero time means
// never, unless something happens.
func (s *Scheduler) fireDue(ctx context.Context) time.Time {
	if s.begin(ctx) != nil {
		return time.Time{}
	}
	defer s.end()
	single := map[string]bool{} // schedules whose jobs don't fit all at once
	for ctx.Err() == nil {
		attempts := s.attempts(ctx, single)
		if len(attempts) == 0 {
			break
		}
		clear(single)
		for _, a := range s.fire(ctx, attempts) {
			single[a.entry.def.Name] = true
		}
	}
	return s.nextLook()
}

// nextLook returns the earliest time at which an entry has something to do.
func (s *Scheduler) nextLook() (at time.Time) {
	for _, e := range s.list() {
		look := e.next
		if e.refused != nil {
			look = e.retryAt
		}
		if !look.IsZero() && e.state.PausedAt == 0 && (at.IsZero() || look.Before(at)) {
			at = look
		}
	}
	return at
}

// attempts returns what to do now.
func (s *Scheduler) attempts(ctx context.Context, single map[string]bool) (list []attempt) {
	now := s.cfg.Clock.Now()
	for _, e := range s.list() {
		if !e.awake(now) {
			continue
		}
		state := e.state
		var err error
		if e.def.Overlap == jobhost.OverlapAllow {
			state.Open = nil
		} else if state.Open, err = s.stillOpen(ctx, e.openIDs()); err != nil {
			s.refuse(e, now, err)
			continue
		}
		a := attempt{entry: e, now: now, single: single[e.def.Name]}
		a.decision = e.def.decide(state, now, len(state.Open) > 0, a.most())
		if !a.decision.empty() {
			list = append(list, a)
		}
	}
	return list
}

// awake reports whether there may be something to do for an entry.
func (e *entry) awake(now time.Time) bool {
	switch {
	case e.state.PausedAt != 0:
		return false
	case e.refused != nil:
		// A clock that was set back must not prolong the pause.
		return !now.Before(e.retryAt) || e.retryAt.Sub(now) > lastPause
	}
	return len(e.state.Waiting) > 0 || !e.next.IsZero() && !e.next.After(now)
}

// most is how many jobs an attempt may create.
func (a *attempt) most() int {
	if a.single {
		return 1
	}
	return max(min(maxJobs, maxBytes/max(len(a.entry.def.Job.Payload), 1)), 1)
}

// stillOpen returns the jobs that have not ended.
func (s *Scheduler) stillOpen(ctx context.Context, ids []string) (open []string, err error) {
	for _, id := range ids {
		job, err := s.cfg.Queue.Job(ctx, id)
		switch {
		case jobhost.CodeOf(err) == jobhost.CodeNotFound: // it has ended and was removed
		case jobhost.CodeOf(err) == jobhost.CodeDamaged: // it doesn't run
		case err != nil:
			return nil, err
		case !job.State.Ended():
			open = append(open, id)
		}
	}
	return open, nil
}

// fire makes decisions durable. It returns the attempts that may succeed with fewer
// jobs.
func (s *Scheduler) fire(ctx context.Context, attempts []attempt) (again []attempt) {
	firings := make([]queue.Firing, len(attempts))
	for i := range attempts {
		firings[i] = attempts[i].firing(func(id string) bool { return s.foreign(ctx, attempts[i].entry.def.Name, id) })
	}
	// Not cancelled by ctx: only the result tells what is true.
	answers, err := s.cfg.Queue.Fire(context.WithoutCancel(ctx), firings)
	for i := range attempts {
		a, answer := &attempts[i], queue.Fired{Err: err}
		if err == nil {
			answer = answers[i]
		}
		switch {
		case answer.Err == nil:
			s.fired(a, &firings[i], answer)
		case jobhost.CodeOf(answer.Err) == jobhost.CodeExhausted && len(firings[i].Specs) > 1:
			again = append(again, *a)
		default:
			s.refuse(a.entry, a.now, answer.Err)
		}
	}
	return again
}

// foreign reports whether an id belongs to a job that isn't the schedule's. Submits
// of such ids are refused now, but older hosts accepted them.
func (s *Scheduler) foreign(ctx context.Context, schedule, id string) bool {
	job, err := s.cfg.Queue.Job(ctx, id)
	return err == nil && job.Labels[jobhost.LabelSchedule] != schedule
}

// firing is the request to the queue. A tick whose id is taken by a foreign job
// gets another id.
func (a *attempt) firing(foreign func(id string) bool) queue.Firing {
	f := queue.Firing{State: a.decision.state}
	for _, tick := range a.decision.fire {
		spec := a.entry.def.jobOf(tick, a.now)
		if foreign(spec.ID) {
			spec.ID = jobhost.NewID()
		}
		f.Specs = append(f.Specs, spec)
		f.State.LastJob, f.State.Fired = spec.ID, record.MillisOf(tick)
		if a.entry.def.Overlap != jobhost.OverlapAllow {
			f.State.Open = append(slices.Clone(f.State.Open), spec.ID)
		}
	}
	return f
}

// fired takes over what became durable, and reports it.
func (s *Scheduler) fired(a *attempt, f *queue.Firing, answer queue.Fired) {
	e := entry{def: a.entry.def, state: f.State}
	e.state.Version++
	s.put(e)
	for i, tick := range a.decision.fire {
		outcome := Fired
		late := max(a.now.Sub(tick), 0)
		switch {
		case answer.Existing[i]:
			outcome = Duplicate
			s.cfg.Logger.Warn("a job with the id of a tick was there already", logkey.Schedule, e.def.Name, logkey.Job, f.Specs[i].ID)
		case late > grace:
			outcome = CaughtUp
		}
		s.cfg.Count(e.def.Name, outcome, 1)
		if outcome != Duplicate {
			s.cfg.Late(e.def.Name, late)
			s.publish(&e, jobhost.EventTickFired, tick, f.Specs[i].ID)
		}
	}
	for _, v := range a.decision.verdicts {
		s.cfg.Count(e.def.Name, v.outcome, v.count)
		s.publish(&e, verdictKinds[v.outcome], v.tick, "")
		s.cfg.Logger.Info("ticks made no job", logkey.Schedule, e.def.Name, logkey.Outcome, string(v.outcome), logkey.Count, v.count)
	}
}

var verdictKinds = map[Outcome]jobhost.EventKind{
	Queued:  jobhost.EventTickQueued,
	Skipped: jobhost.EventTickSkipped,
	Missed:  jobhost.EventTickMissed,
}

// publish reports an event about a schedule.
func (s *Scheduler) publish(e *entry, kind jobhost.EventKind, tick time.Time, job string) {
	event := jobhost.Event{
		Kind: kind, Time: s.cfg.Clock.Now().UTC(), Job: job, Worker: e.def.Job.Worker, Schedule: e.def.Name,
	}
	if !tick.IsZero() {
		local := tick.In(e.def.Timing.Zone())
		event.Tick = &local
	}
	s.cfg.Publish(event)
}

// refuse records that nothing could be done for an entry now. After a conflict it
// reads the state again, which has changed.
func (s *Scheduler) refuse(e *entry, now time.Time, err error) {
	next := *e
	if e.refused == nil || e.refused.Error() != err.Error() {
		s.cfg.Logger.Warn("a tick could make no job; it is tried again", logkey.Schedule, e.def.Name, logkey.Error, err)
	}
	next.refused = err
	next.pause = min(max(2*e.pause, firstPause), lastPause)
	next.retryAt = now.Add(max(retryAfter(err), next.pause))
	if jobhost.CodeOf(err) == jobhost.CodeConflict {
		if states, err := s.cfg.Store.Schedules(context.Background()); err == nil {
			i := slices.IndexFunc(states, func(state record.ScheduleState) bool { return state.Name == e.def.Name })
			if i >= 0 {
				next.state = states[i]
			}
		}
	}
	s.put(next)
	s.cfg.Count(e.def.Name, Refused, 1)
}
