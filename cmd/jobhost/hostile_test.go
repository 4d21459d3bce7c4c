package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// hostileEvents are what all jobs do.
func hostileEvents(yield func(jobhost.Event, error) bool) {
	started := jobhost.Event{Seq: 1, Kind: jobhost.EventStarted, Time: testTime, Job: "job-1", Worker: "wordcount", Attempt: 1}
	output := started
	output.Seq, output.Kind, output.Data = 2, jobhost.EventOutput, []byte(hostile)
	if yield(started, nil) && yield(output, nil) {
		yield(jobhost.Event{}, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host stops"})
	}
}

// Logs of dead jobs have a second attempt, with too many lines.
func (s *testServer) Logs(ctx context.Context, id string) ([]jobhost.AttemptLog, error) {
	logs, err := s.Host.Logs(ctx, id)
	job, _ := s.Host.Job(ctx, id)
	if err != nil || len(logs) != 1 {
		return logs, err
	}
	if job.Worker == "hostile" {
		logs[0].Lines = []string{hostile}
	}
	if job.State == jobhost.Dead {
		logs = append(logs, jobhost.AttemptLog{Attempt: 2, Lines: logs[0].Lines, Dropped: 7})
	}
	return logs, nil
}

func (s *testServer) Why(ctx context.Context, id string) (jobhost.Why, error) {
	w, err := s.Host.Why(ctx, id)
	if job, _ := s.Host.Job(ctx, id); job.Worker == "hostile" {
		w.Code, w.Reason, w.Ends = hostile, hostile, hostile
	}
	return w, err
}

// Schedules tells of one that is paused and one that is not.
func (s *testServer) Schedules(context.Context) ([]jobhost.Schedule, error) {
	beat := jobhost.Schedule{
		Name: "beat", Worker: "vowels", Every: jobhost.Duration(10 * time.Second), CatchUp: jobhost.CatchUpNone, Overlap: jobhost.OverlapAllow,
		Paused: true, PausedAt: &testTime, Next: []time.Time{},
	}
	return []jobhost.Schedule{beat, nightly()}, nil
}

func nightly() jobhost.Schedule {
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
func (s *testServer) Schedule(_ context.Context, name string) (jobhost.Schedule, error) {
	if name != "nightly" {
		return jobhost.Schedule{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no schedule " + name, Hint: "jobhost schedule ls"}
	}
	return nightly(), nil
}

func (s *testServer) RunSchedule(ctx context.Context, name string) (jobhost.Receipt, error) {
	_, err := s.Schedule(ctx, name)
	return jobhost.Receipt{ID: "manual-1", State: jobhost.Ready}, err
}

func (s *testServer) PauseSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	paused, err := s.Schedule(ctx, name)
	paused.Paused, paused.PausedAt, paused.Next = true, &testTime, []time.Time{}
	return paused, err
}

func (s *testServer) ResumeSchedule(ctx context.Context, name string) (jobhost.Schedule, error) {
	return s.Schedule(ctx, name)
}

// Reload finds another version of vowels, and nothing else.
func (s *testServer) Reload(_ context.Context, worker string) (jobhost.Reload, error) {
	digest := strings.Repeat("0123456789abcdef", 4)
	all := []jobhost.WorkerReload{
		{Name: "loganalyzer", Change: jobhost.WorkerUnchanged, Before: digest, SHA256: digest, Version: 1},
		{Name: "new", Change: jobhost.WorkerAdded, SHA256: digest, Version: 1},
		{Name: "old", Change: jobhost.WorkerRemoved, Before: digest},
		{Name: "vowels", Change: jobhost.WorkerChanged, Before: digest, SHA256: strings.Repeat("f", 64), Version: 2},
	}
	switch worker {
	case "":
		return jobhost.Reload{Workers: all, NeedsRestart: []string{"host.listen"}}, nil
	case "broken":
		return jobhost.Reload{}, errors.Join(
			&jobhost.Error{Code: jobhost.CodeInvalid, Message: "manifest.toml:3:1: worker.broken: plugin is missing"},
			&jobhost.Error{Code: jobhost.CodeInvalid, Message: "manifest.toml:4:1: tiemout is not a setting", Hint: "did you mean timeout?"},
		)
	}
	for _, w := range all {
		if w.Name == worker {
			return jobhost.Reload{Workers: []jobhost.WorkerReload{w}}, nil
		}
	}
	return jobhost.Reload{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no worker " + worker}
}
