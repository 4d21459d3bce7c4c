package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// hostile is what a bad server or worker would like a terminal to get.
const hostile = "\x1b[31mred\x1b]0;title\x07\r\u009b2J\u202eevil\x7f\nsecond line"

// testServer is a real host in memory whose answers are dated: see dated_test.go. Its workers
// wordcount, vowels, loganalyzer and hostile run [guests.Words]; test is that of
// [hosttest.Run]. Jobs without an id get job-1, job-2 and so on. What a worker can't be made
// to say is in hostile_test.go.
type testServer struct {
	*hosttest.Host
	states  *statetest.Memory
	jobs    atomic.Int64
	uploads atomic.Int64
	// callbacks are those to URLs, by job.
	callbacks sync.Map

	// onWait and onFollow are called first when a job is waited for, and when events are
	// followed; nil = nothing is.
	onWait   func(id string)
	onFollow func()
}

func newServer(t testing.TB) *testServer {
	t.Helper()
	s := &testServer{states: statetest.NewMemory()}
	s.states.Now = func() time.Time { return testTime }
	s.Host = hosttest.Open(t, func(c *host.Config) {
		c.States = s.states
		for _, name := range []string{"hostile", "loganalyzer", "vowels", "wordcount"} {
			c.Workers = append(c.Workers, hosttest.Worker(name, guests.Words))
		}
	})
	return s
}

func (s *testServer) name(spec *jobhost.Spec) {
	if spec.ID == "" {
		spec.ID = fmt.Sprint("job-", s.jobs.Add(1))
	}
}

// Submit takes callbacks to hooks.example.com, and makes none of them.
func (s *testServer) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	s.name(&spec)
	if strings.HasPrefix(spec.Callback.URL, "https://hooks.example.com/") {
		s.callbacks.Store(spec.ID, spec.Callback)
		spec.Callback = jobhost.Callback{}
	}
	return s.Host.Submit(ctx, spec)
}

func (s *testServer) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	for i := range specs {
		s.name(&specs[i])
	}
	return s.Host.SubmitBatch(ctx, specs)
}

func (s *testServer) Upload(ctx context.Context, r io.Reader) (jobhost.Upload, error) {
	s.uploads.Add(1)
	return s.Host.Upload(ctx, r)
}

func (s *testServer) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	if s.onWait != nil {
		s.onWait(id)
	}
	job, err := s.Host.Wait(ctx, id)
	dateJob(&job)
	return job, err
}

// Events begin with the first one, so that none is missed. Those of everything are few and
// hostile, and end with the host.
func (s *testServer) Events(ctx context.Context, q jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	if s.onFollow != nil {
		s.onFollow()
	}
	if q.Job == "" && q.Workflow == "" {
		return hostileEvents
	}
	q.After = max(q.After, 1)
	return s.Host.Events(ctx, q)
}

// CleanStates is 60 days later.
func (s *testServer) CleanStates(ctx context.Context, c jobhost.StateCleanup) (jobhost.StateCleaned, error) {
	return state.Clean(ctx, s.states, c, testTime.AddDate(0, 0, 60), nil)
}
