package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// How many upcoming ticks are shown.
const (
	nextInLists = 1
	nextInShow  = 10
)

// Schedules returns all schedules, ordered by name.
func (s *Scheduler) Schedules(context.Context) ([]jobhost.Schedule, error) {
	entries := s.list()
	list := make([]jobhost.Schedule, len(entries))
	for i, e := range entries {
		list[i] = s.describe(e, nextInLists)
	}
	return list, nil
}

// Schedule returns a schedule; not_found if there is none.
func (s *Scheduler) Schedule(_ context.Context, name string) (jobhost.Schedule, error) {
	e, err := s.find(name)
	if err != nil {
		return jobhost.Schedule{}, err
	}
	return s.describe(e, nextInShow), nil
}

func (s *Scheduler) describe(e *entry, upcoming int) jobhost.Schedule {
	def, state := e.def, &e.state
	d := jobhost.Schedule{
		Name:        def.Name,
		Description: def.Description,
		Worker:      def.Job.Worker,
		Cron:        def.Timing.Cron(),
		Every:       jobhost.Duration(def.Timing.Interval()),
		Jitter:      jobhost.Duration(def.Jitter),
		CatchUp:     def.CatchUp,
		Overlap:     def.Overlap,
		Paused:      state.PausedAt != 0,
		PausedAt:    timeOrNil(state.PausedAt, time.UTC),
		Next:        []time.Time{},
		LastTick:    timeOrNil(state.Fired, def.Timing.Zone()),
		LastJob:     state.LastJob,
		Waiting:     len(state.Waiting),
	}
	if d.Cron != "" {
		d.Timezone = def.Timing.Zone().String()
	}
	if !d.Paused {
		// After the clock was set back, decided ticks recur and don't count.
		after := s.cfg.Clock.Now()
		if last := state.Last.Time(); last.After(after) {
			after = last
		}
		d.Next = def.Timing.Upcoming(after, upcoming)
	}
	if e.refused != nil {
		d.Refused = e.refused.Error()
	}
	return d
}

func timeOrNil(m record.Millis, zone *time.Location) *time.Time {
	if m == 0 {
		return nil
	}
	t := m.Time().In(zone)
	return &t
}

// RunSchedule submits the schedule's job now. Errors are those of a submit; exhausted also if
// overlaps aren't allowed and too many of the schedule's jobs are open.
func (s *Scheduler) RunSchedule(ctx context.Context, name string) (jobhost.Receipt, error) {
	e, err := s.change(ctx, name)
	if err != nil {
		return jobhost.Receipt{}, err
	}
	defer s.end()
	spec := e.def.job()
	spec.ID = jobhost.NewID()
	next := *e
	next.state.LastJob = spec.ID
	if e.def.Overlap != jobhost.OverlapAllow {
		open, err := s.stillOpen(ctx, e.openIDs())
		if err != nil {
			return jobhost.Receipt{}, err
		}
		if len(open) >= MaxOpen {
			return jobhost.Receipt{}, &jobhost.Error{
				Code: jobhost.CodeExhausted, Message: fmt.Sprintf("%d jobs of schedule %s are open", len(open), name),
				RetryAfter: time.Second,
			}
		}
		next.state.Open = append(slices.Clip(open), spec.ID)
	}
	next.state, err = s.save(ctx, queue.Firing{State: next.state, Specs: []jobhost.Spec{spec}})
	if err != nil {
		return jobhost.Receipt{}, err
	}
	s.put(next)
	s.cfg.Count(name, Manual, 1)
	return jobhost.Receipt{ID: spec.ID, State: jobhost.Ready}, nil
}

// PauseSchedule durably stops ticks from creating jobs.
func (s *Scheduler) PauseSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	e, err := s.change(ctx, name)
	if err != nil {
		return jobhost.Schedule{}, err
	}
	defer s.end()
	if e.state.PausedAt != 0 {
		return s.describe(e, nextInShow), nil
	}
	state := e.state
	state.PausedAt = record.MillisOf(s.cfg.Clock.Now())
	return s.applyState(ctx, e, state, jobhost.EventPaused)
}

// ResumeSchedule lets ticks create jobs from now on. It also repairs a schedule that fired while
// the clock was ahead.
func (s *Scheduler) ResumeSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	e, err := s.change(ctx, name)
	if err != nil {
		return jobhost.Schedule{}, err
	}
	defer s.end()
	now := record.MillisOf(s.cfg.Clock.Now())
	if e.state.PausedAt == 0 && e.state.Last <= now {
		return s.describe(e, nextInShow), nil
	}
	state := e.state
	state.PausedAt, state.Last = 0, now
	return s.applyState(ctx, e, state, jobhost.EventResumed)
}

// change returns the entry, locked for changes until the caller calls end.
func (s *Scheduler) change(ctx context.Context, name string) (*entry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	e, err := s.find(name)
	if err != nil {
		s.end()
	}
	return e, err
}

// applyState makes a requested state durable.
func (s *Scheduler) applyState(ctx context.Context, e *entry, state record.ScheduleState, kind jobhost.EventKind) (jobhost.Schedule, error) {
	state, err := s.save(ctx, queue.Firing{State: state})
	if err != nil {
		return jobhost.Schedule{}, err
	}
	e = s.put(entry{def: e.def, state: state})
	s.publish(e, kind, time.Time{}, "")
	s.cfg.Logger.Info("schedule turned", logkey.Schedule, e.def.Name, logkey.State, string(kind))
	s.rouse()
	return s.describe(e, nextInShow), nil
}
