package main

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// Schedules tells of one that is paused and one that is not.
func (s *fakeServer) Schedules(context.Context) ([]jobhost.Schedule, error) {
	beat := jobhost.Schedule{
		Name: "beat", Worker: "vowels", Every: jobhost.Duration(10 * time.Second), CatchUp: jobhost.CatchUpNone, Overlap: jobhost.OverlapAllow,
		Paused: true, PausedAt: &testTime, Next: []time.Time{},
	}
	return []jobhost.Schedule{beat, fakeNightly()}, nil
}

func fakeNightly() jobhost.Schedule {
	zone := time.FixedZone("", 3600)
	last := time.Date(2026, 2, 3, 2, 30, 0, 0, zone)
	return jobhost.Schedule{
		Name: "nightly", Description: hostile, Worker: "wordcount", Cron: "30 2 * * *", Timezone: "Europe/Berlin",
		Jitter: jobhost.Duration(time.Minute), CatchUp: jobhost.CatchUpOne, Overlap: jobhost.OverlapQueue,
		Next: []time.Time{last.AddDate(0, 0, 1), last.AddDate(0, 0, 2)}, LastTick: &last, LastJob: "nightly.20260203T013000Z",
		Waiting: 2, Refused: "the queue is full",
	}
}

// Schedule knows nightly only.
func (s *fakeServer) Schedule(_ context.Context, name string) (jobhost.Schedule, error) {
	if name != "nightly" {
		return jobhost.Schedule{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no schedule " + name, Hint: "jobhost schedule ls"}
	}
	return fakeNightly(), nil
}

func (s *fakeServer) RunSchedule(ctx context.Context, name string) (jobhost.Receipt, error) {
	_, err := s.Schedule(ctx, name)
	return jobhost.Receipt{ID: "manual-1", State: jobhost.Ready}, err
}

func (s *fakeServer) PauseSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	paused, err := s.Schedule(ctx, name)
	paused.Paused, paused.PausedAt, paused.Next = true, &testTime, []time.Time{}
	return paused, err
}

func (s *fakeServer) ResumeSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	return s.Schedule(ctx, name)
}
