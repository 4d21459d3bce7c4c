package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// forgetAfter is how long the state of a schedule that was removed from the
// manifest is kept: a paused schedule comes back paused.
const forgetAfter = 90 * 24 * time.Hour

// Set replaces all schedules by the given ones, which must be valid
// ([Schedule.Check]) and have unique names. When it returns, changes are durable:
//
//   - of a schedule that is new, back, or due at other times than before, only
//     ticks from now on count;
//   - of one that is gone, ticks that wait are dropped; jobs that were made go on.
//
// On an error some may have been replaced.
func (s *Scheduler) Set(ctx context.Context, schedules []Schedule) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	defer s.rouse()
	states, err := s.cfg.Store.Schedules(ctx)
	if err != nil {
		return err
	}
	now := record.MillisOf(s.cfg.Clock.Now())
	var errs []error
	wanted := map[string]bool{}
	for i := range schedules {
		def := schedules[i].OrDefaults()
		wanted[def.Name] = true
		j, known := slices.BinarySearchFunc(states, def.Name, func(state record.ScheduleState, name string) int {
			return strings.Compare(state.Name, name)
		})
		state := record.ScheduleState{Name: def.Name}
		if known {
			state = states[j]
		}
		errs = append(errs, s.adopt(ctx, &def, state, now))
	}
	for _, state := range states {
		if !wanted[state.Name] {
			errs = append(errs, s.leave(ctx, state, now))
		}
	}
	return errors.Join(errs...)
}

// adopt takes over a schedule, which may have a state already.
func (s *Scheduler) adopt(ctx context.Context, def *Schedule, state record.ScheduleState, now record.Millis) error {
	if timing := def.Timing.String(); state.Timing != timing || state.GoneAt != 0 {
		if state.Timing != timing || state.Last < now {
			state.Last = now
		}
		state.Timing, state.GoneAt = timing, 0
		var err error
		if state, err = s.save(ctx, queue.Firing{State: state}); err != nil {
			return fmt.Errorf("set schedule %s: %w", def.Name, err)
		}
	}
	if ahead := state.Last - now; ahead > record.Millis(time.Hour/time.Millisecond) {
		s.cfg.Logger.Warn("the clock was set back: ticks up to a later time are decided already",
			logkey.Schedule, def.Name, "until", state.Last.Time(), logkey.Hint, "jobhost schedule resume "+def.Name)
	}
	s.put(entry{def: def, state: state})
	return nil
}

// leave marks the state of a removed schedule, or forgets it after a while.
func (s *Scheduler) leave(ctx context.Context, state record.ScheduleState, now record.Millis) error {
	s.drop(state.Name)
	f := queue.Firing{State: state}
	switch {
	case state.GoneAt == 0:
		f.State.GoneAt, f.State.Waiting, f.State.Open = now, nil, nil
	case now-state.GoneAt > record.Millis(forgetAfter/time.Millisecond):
		f.Forget = true
	default:
		return nil
	}
	if _, err := s.save(ctx, f); err != nil {
		return fmt.Errorf("remove schedule %s: %w", state.Name, err)
	}
	return nil
}

func (s *Scheduler) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

// save makes one firing durable and returns the state with its new version.
func (s *Scheduler) save(ctx context.Context, f queue.Firing) (record.ScheduleState, error) {
	answers, err := s.cfg.Queue.Fire(context.WithoutCancel(ctx), []queue.Firing{f})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return record.ScheduleState{}, err
	}
	f.State.Version++
	return f.State, nil
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Defined returns the active schedules, ordered by name.
func (s *Scheduler) Defined() []Schedule {
	var defined []Schedule
	for _, e := range s.list() {
		defined = append(defined, *e.def)
	}
	return defined
}
