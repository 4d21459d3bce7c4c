package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// letters returns the letters that match, the latest submit first.
func (s *fakeServer) letters(f *jobhost.DeadFilter) []jobhost.DeadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	letters := []jobhost.DeadLetter{}
	for _, id := range slices.Backward(s.ids) {
		j := s.jobs[id]
		if j == nil || j.State != jobhost.Dead || f.Worker != "" && f.Worker != j.Worker || f.Code != "" && f.Code != j.Failures[0].Code ||
			!strings.Contains(id, f.Text) {
			continue
		}
		last := j.Failures[0]
		letters = append(letters, jobhost.DeadLetter{
			Job: id, Worker: j.Worker, Code: last.Code, Category: last.Category, Severity: last.Severity,
			Message: last.Message, Attempts: 1, CreatedAt: testTime, DiedAt: last.EndedAt,
		})
	}
	return letters
}

func (s *fakeServer) Dead(_ context.Context, f jobhost.DeadFilter) (jobhost.DeadPage, error) {
	return jobhost.DeadPage{Letters: s.letters(&f)}, nil
}

func (s *fakeServer) DeadSummary(_ context.Context, q jobhost.DeadQuery) (jobhost.DeadSummary, error) {
	letters := s.letters(&jobhost.DeadFilter{Worker: q.Worker})
	n := int64(len(letters))
	return jobhost.DeadSummary{
		After: testTime.Truncate(time.Hour), Before: testTime.Truncate(time.Hour).Add(2 * time.Hour), Deaths: n,
		Codes:   []jobhost.DeathCount{{Name: letters[0].Code, Deaths: n}},
		Workers: []jobhost.DeathCount{{Name: letters[0].Worker, Deaths: n}},
		Trend: []jobhost.DeathTime{
			{Since: testTime.Truncate(time.Hour), Deaths: n}, {Since: testTime.Truncate(time.Hour).Add(time.Hour)},
		},
	}, nil
}

func (s *fakeServer) ChangeDead(ctx context.Context, c jobhost.DeadChange) (done jobhost.DeadChanged, err error) {
	for _, letter := range s.letters(&c.Filter) {
		if c.Action == jobhost.DeadRetry {
			_, err = s.Retry(ctx, letter.Job)
		} else {
			err = s.Delete(ctx, letter.Job)
		}
		if err != nil {
			return done, err
		}
		done.Matched++
		done.Changed++
	}
	return done, nil
}

func (s *fakeServer) CancelTask(ctx context.Context, id string, _ int) (jobhost.Job, error) {
	return s.Cancel(ctx, id)
}

func (s *fakeServer) RetryTask(ctx context.Context, id string, _ int) (jobhost.Job, error) {
	return s.Retry(ctx, id)
}
