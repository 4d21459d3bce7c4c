package hosttest

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// FakeSchedule is the name of the fake's only schedule; see [Run].
const FakeSchedule = "yearly"

// Schedules implements [jobhost.Scheduler].
func (f *Fake) Schedules(ctx context.Context) ([]jobhost.Schedule, error) {
	s, err := f.Schedule(ctx, FakeSchedule)
	if err == nil && len(s.Next) > 1 {
		s.Next = s.Next[:1]
	}
	return []jobhost.Schedule{s}, err
}

// Schedule implements [jobhost.Scheduler].
func (f *Fake) Schedule(_ context.Context, name string) (jobhost.Schedule, error) {
	if err := findSchedule(name); err != nil {
		return jobhost.Schedule{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.yearlyLocked()
}

func findSchedule(name string) error {
	if err := jobhost.CheckSchedule(name); err != nil {
		return err
	}
	if name != FakeSchedule {
		return problem(jobhost.CodeNotFound, "schedule", "there is no schedule %q", name)
	}
	return nil
}

// yearlyLocked describes the schedule.
func (f *Fake) yearlyLocked() (jobhost.Schedule, error) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return jobhost.Schedule{}, err
	}
	s := jobhost.Schedule{
		Name: FakeSchedule, Worker: FakeWorker, Cron: "0 0 1 1 *", Timezone: zone.String(),
		CatchUp: jobhost.CatchUpOne, Overlap: jobhost.OverlapSkip,
		Paused: f.paused != nil, PausedAt: f.paused, Next: []time.Time{}, LastJob: f.lastJob,
	}
	if !s.Paused {
		year := time.Now().In(zone).Year()
		for i := range 10 {
			s.Next = append(s.Next, time.Date(year+1+i, 1, 1, 0, 0, 0, 0, zone))
		}
	}
	return s, nil
}

// RunSchedule implements [jobhost.Scheduler].
func (f *Fake) RunSchedule(ctx context.Context, name string) (jobhost.Receipt, error) {
	if err := findSchedule(name); err != nil {
		return jobhost.Receipt{}, err
	}
	receipt, err := f.Submit(ctx, jobhost.Spec{
		Worker: FakeWorker, Entry: "echo", Payload: []byte("happy new year"),
		Labels: map[string]string{jobhost.LabelSchedule: name},
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastJob = receipt.ID
	return receipt, err
}

// PauseSchedule implements [jobhost.Scheduler].
func (f *Fake) PauseSchedule(_ context.Context, name string) (jobhost.Schedule, error) {
	now := time.Now().UTC()
	return f.turn(name, jobhost.EventPaused, &now)
}

// ResumeSchedule implements [jobhost.Scheduler].
func (f *Fake) ResumeSchedule(_ context.Context, name string) (jobhost.Schedule, error) {
	return f.turn(name, jobhost.EventResumed, nil)
}

// turn pauses or resumes the schedule, if it isn't so already.
func (f *Fake) turn(name string, kind jobhost.EventKind, paused *time.Time) (jobhost.Schedule, error) {
	if err := findSchedule(name); err != nil {
		return jobhost.Schedule{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if (f.paused == nil) != (paused == nil) {
		f.paused = paused
		f.hub.publish(jobhost.Event{Kind: kind, Worker: FakeWorker, Schedule: name})
	}
	return f.yearlyLocked()
}
