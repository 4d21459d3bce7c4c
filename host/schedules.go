package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/schedule"
)

func (c *Config) checkSchedules(workers map[string]bool) error {
	var errs []error
	if _, keeps := c.Store.(schedule.Store); len(c.Schedules) > 0 && c.Store != nil && !keeps {
		errs = append(errs, errors.New("this store keeps no schedules"))
	}
	seen := map[string]bool{}
	for i := range c.Schedules {
		s := &c.Schedules[i]
		if seen[s.Name] {
			errs = append(errs, fmt.Errorf("schedule %s is there twice", s.Name))
		}
		seen[s.Name] = true
		if err := s.Check(); err != nil {
			errs = append(errs, fmt.Errorf("schedule %s: %w", s.Name, err))
		} else if !workers[s.Job.Worker] {
			errs = append(errs, fmt.Errorf("schedule %s: there is no worker %s", s.Name, s.Job.Worker))
		}
	}
	return errors.Join(errs...)
}

// newScheduler returns a scheduler on the queue, nil when the store keeps no
// schedules.
func (h *Host) newScheduler(q *queue.Queue) *schedule.Scheduler {
	store, ok := h.cfg.Store.(schedule.Store)
	if !ok {
		return nil
	}
	return schedule.New(schedule.Config{
		Queue:   q,
		Store:   store,
		Clock:   h.scheduleClock(q),
		Publish: h.publish,
		Count:   func(name string, o schedule.Outcome, n int) { h.cfg.Metrics.ScheduleTicks(name, string(o), n) },
		Late:    func(name string, late time.Duration) { h.cfg.Metrics.ScheduleLate(name, late) },
		Logger:  h.cfg.Logger,
	})
}

// scheduleClock is what schedules go by. With a store that hosts share it is the store's, as the queue shows it: by that of a
// host that led and was ahead, ticks are decided already for the next one, which would wait until they are due.
func (h *Host) scheduleClock(q *queue.Queue) schedule.Clock {
	if _, shared := h.cfg.Store.(record.Leased); shared && h.cfg.Clock == nil {
		return schedule.ClockOf(q.Now)
	}
	return h.cfg.Clock
}

// startSchedules fires schedules from now on, until the host begins to drain.
func (r *running) startSchedules(ctx context.Context) error {
	if r.scheduler == nil {
		return nil
	}
	if err := r.scheduler.Set(ctx, r.host.cfg.Schedules); err != nil {
		return fmt.Errorf("start schedules: %w", err)
	}
	return r.scheduler.Start(r.host.leaving, r.root)
}

// setSchedules takes up the schedules of a reload.
func (r *running) setSchedules(ctx context.Context, schedules []schedule.Schedule) error {
	if r.scheduler == nil {
		return nil
	}
	if err := r.scheduler.Set(ctx, schedules); err != nil {
		return fmt.Errorf("reload schedules: %w", err)
	}
	return nil
}

// definedSchedules returns the schedules that are fired now.
func (h *Host) definedSchedules() []schedule.Schedule {
	if r := h.running.Load(); r != nil && r.scheduler != nil {
		return r.scheduler.Defined()
	}
	return nil
}

// jobEnded tells the schedules of the end of a job.
func (h *Host) jobEnded(id string) {
	if r := h.running.Load(); r != nil && r.scheduler != nil {
		r.scheduler.JobEnded(id)
	}
}
