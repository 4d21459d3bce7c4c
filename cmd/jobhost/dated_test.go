package main

import (
	"context"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// testTime is when everything happens in tests.
var testTime = time.Date(2026, 2, 3, 15, 4, 5, 0, time.UTC)

// testEnd is when everything has ended.
var testEnd = testTime.Add(1500 * time.Millisecond)

// dateJob lets a job happen between [testTime] and [testEnd].
func dateJob(job *jobhost.Job) {
	job.CreatedAt = testTime
	dateEnd(&job.EndedAt)
	for i := range job.Tasks {
		task := &job.Tasks[i]
		task.ReadyAt = testTime
		if task.StartedAt != nil {
			task.StartedAt = &testTime
		}
		dateEnd(&task.EndedAt)
		if task.Fuel > 0 {
			task.Fuel = 59157
		}
	}
	for i := range job.Failures {
		f := &job.Failures[i]
		f.StartedAt, f.EndedAt = testTime, testEnd
		if job.Worker == "hostile" {
			f.Code, f.Message, f.Stack, f.Context = hostile, hostile, hostile, hostile
			f.Category, f.Severity = hostile, hostile
		}
	}
}

func dateEnd(end **time.Time) {
	if *end != nil {
		*end = &testEnd
	}
}

// dated dates the answer of a call about one job.
func dated(job jobhost.Job, err error) (jobhost.Job, error) {
	dateJob(&job)
	return job, err
}

func (s *testServer) Job(ctx context.Context, id string) (jobhost.Job, error) {
	job, err := dated(s.Host.Job(ctx, id))
	if to, ok := s.callbacks.Load(id); ok {
		callback := to.(jobhost.Callback)
		job.Callback = &callback
	}
	return job, err
}

func (s *testServer) Cancel(ctx context.Context, id string) (jobhost.Job, error) {
	return dated(s.Host.Cancel(ctx, id))
}

func (s *testServer) Retry(ctx context.Context, id string) (jobhost.Job, error) {
	return dated(s.Host.Retry(ctx, id))
}

// Jobs dates what the host has found, by the times that it has.
func (s *testServer) Jobs(ctx context.Context, f jobhost.Filter) (jobhost.Page, error) {
	page, err := s.Host.Jobs(ctx, f)
	for i := range page.Jobs {
		dateJob(&page.Jobs[i])
	}
	return page, err
}

func (s *testServer) Dead(ctx context.Context, f jobhost.DeadFilter) (jobhost.DeadPage, error) {
	page, err := s.Host.Dead(ctx, f)
	for i := range page.Letters {
		letter := &page.Letters[i]
		letter.CreatedAt, letter.DiedAt = testTime, testEnd
		if letter.Worker == "hostile" {
			letter.Code, letter.Message = hostile, hostile
		}
	}
	return page, err
}

// DeadSummary shows the two hours from [testTime] on, with all deaths in the first.
func (s *testServer) DeadSummary(ctx context.Context, q jobhost.DeadQuery) (jobhost.DeadSummary, error) {
	sum, err := s.Host.DeadSummary(ctx, q)
	hour := testTime.Truncate(time.Hour)
	sum.After, sum.Before = hour, hour.Add(2*time.Hour)
	sum.Trend = []jobhost.DeathTime{{Since: hour, Deaths: sum.Deaths}, {Since: hour.Add(time.Hour)}}
	return sum, err
}

func (s *testServer) Keys(ctx context.Context, f jobhost.KeyFilter) (jobhost.KeyPage, error) {
	if f.Worker == "hostile" {
		return jobhost.KeyPage{Keys: []jobhost.Key{{Name: hostile, Version: 1}}}, nil
	}
	page, err := s.Host.Keys(ctx, f)
	for i := range page.Keys {
		dateKey(&page.Keys[i])
	}
	return page, err
}

func (s *testServer) KeyValue(ctx context.Context, worker, name string) (jobhost.Key, []byte, error) {
	key, value, err := s.Host.KeyValue(ctx, worker, name)
	dateKey(&key)
	return key, value, err
}

// dateKey moves a change to [testTime], and the end of the key with it.
func dateKey(key *jobhost.Key) {
	if key.ExpiresAt != nil {
		at := testTime.Add(key.ExpiresAt.Sub(key.ChangedAt).Round(time.Hour))
		key.ExpiresAt = &at
	}
	key.ChangedAt = testTime
}

// Workers shows those of the scripts as if they had worked for long, and one disabled.
func (s *testServer) Workers(ctx context.Context) ([]jobhost.WorkerStatus, error) {
	all, err := s.Host.Workers(ctx)
	var shown []jobhost.WorkerStatus
	for _, w := range all {
		if w.Name != "test" && w.Name != "hostile" {
			dateWorker(&w)
			shown = append(shown, w)
		}
	}
	return shown, err
}

func dateWorker(w *jobhost.WorkerStatus) {
	w.SHA256, w.Version, w.LoadedAt = strings.Repeat("0123456789abcdef", 4), 3, testTime
	w.Busy, w.Tasks = 1, jobhost.TaskNumbers{"ready": 12, "running": 1, "succeeded": 1234, "dead": 1}
	if w.Name == "loganalyzer" {
		w.Disabled = "5 failures within a minute"
	}
}

func datedWorker(w jobhost.WorkerStatus, err error) (jobhost.WorkerStatus, error) {
	dateWorker(&w)
	return w, err
}

func (s *testServer) PauseWorker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	return datedWorker(s.Host.PauseWorker(ctx, name))
}

func (s *testServer) ScaleWorker(ctx context.Context, name string, slots int) (jobhost.WorkerStatus, error) {
	return datedWorker(s.Host.ScaleWorker(ctx, name, slots))
}
