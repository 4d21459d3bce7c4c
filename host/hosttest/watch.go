package hosttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// watcher collects events until one of the job and kind that it is asked to
// stop at.
type watcher struct {
	events []jobhost.Event
	err    error
}

// watch reads events, calling live with the first one, until stop says so.
func (s *setup) watch(ctx context.Context, query jobhost.EventQuery, live func(), stop func(jobhost.Event) bool) (w watcher) {
	for event, err := range s.server.Events(ctx, query) {
		if err != nil {
			w.err = err
			break
		}
		if len(w.events) == 0 && live != nil {
			live()
		}
		w.events = append(w.events, event)
		if stop(event) {
			break
		}
	}
	return w
}

// record runs do while it watches, and returns what happened until stop.
// Whether a stream is live shows only in its first event, so record makes
// events until there is one: now and then, since a reader that is not given the
// processor would be too slow for more.
func (s *setup) record(do func(), stop func(jobhost.Event) bool) watcher {
	s.Helper()
	live := make(chan struct{})
	var w watcher
	var group sync.WaitGroup
	group.Go(func() { w = s.watch(s.ctx, jobhost.EventQuery{}, func() { close(live) }, stop) })
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for probing := true; probing; {
		s.finish(spec("empty", "probe"))
		select {
		case <-live:
			probing = false
		case <-s.ctx.Done():
			s.Fatal("no event came")
		case <-again.C:
		}
	}
	do()
	group.Wait()
	return w
}

func ended(id string) func(jobhost.Event) bool {
	return func(e jobhost.Event) bool { return e.Kind == jobhost.EventEnded && e.Job == id }
}

func (w *watcher) kindsOf(job string) (kinds []jobhost.EventKind) {
	for _, e := range w.events {
		if e.Job == job && e.Kind != jobhost.EventOutput && e.Kind != jobhost.EventProgress {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func (s *setup) wantKinds(w *watcher, job string, want ...jobhost.EventKind) {
	s.Helper()
	if got := w.kindsOf(job); !slices.Equal(got, want) {
		s.Errorf("job %s: got events %v, want %v", job, got, want)
	}
}

func testEvents(s *setup) {
	good, bad := spec("echo", "x"), spec("fail_permanent", "no luck")
	good.ID, bad.ID = "good", "bad"
	w := s.record(func() {
		s.finish(good)
		s.finish(bad)
	}, ended("bad"))
	s.check(w.err)
	s.wantKinds(&w, "good", jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventSucceeded, jobhost.EventEnded)
	s.wantKinds(&w, "bad", jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventDead, jobhost.EventEnded)
	var last uint64
	for _, e := range w.events {
		if e.Seq <= last || e.Time.IsZero() || e.Worker != "test" {
			s.Errorf("event %+v after number %d", e, last)
		}
		last = e.Seq
		if e.Kind == jobhost.EventDead && (e.Failure == nil || e.Failure.Message == "") {
			s.Errorf("event %+v doesn't say why", e)
		}
	}
}

// testEventsAgain goes on after an event that was seen before.
func testEventsAgain(s *setup) {
	job := spec("echo", "x")
	job.ID = "job"
	first := s.record(func() { s.finish(job) }, ended("job"))
	s.check(first.err)
	i := slices.IndexFunc(first.events, func(e jobhost.Event) bool { return e.Job == "job" && e.Kind == jobhost.EventSubmitted })
	if i < 0 {
		s.Fatalf("the job's submit is missing: %+v", first.events)
	}
	again := s.watch(s.ctx, jobhost.EventQuery{After: first.events[i].Seq}, nil, ended("job"))
	s.check(again.err)
	s.wantKinds(&again, "job", jobhost.EventStarted, jobhost.EventSucceeded, jobhost.EventEnded)
	for k, e := range again.events {
		if want := first.events[i+1+k]; e.Seq != want.Seq || e.Kind != want.Kind || e.Job != want.Job {
			s.Errorf("event %d is %+v, want %+v", k, e, want)
		}
	}
}

// testEventsOfJob watches one job, and stops with a cause.
func testEventsOfJob(s *setup) {
	first := s.record(func() { s.finish(spec("echo", "other")) }, func(jobhost.Event) bool { return true })
	job := spec("echo", "x")
	job.ID = "job"
	s.finish(job)
	s.finish(spec("echo", "another"))

	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	query := jobhost.EventQuery{Job: "job", After: first.events[0].Seq}
	w := s.watch(ctx, query, nil, func(e jobhost.Event) bool {
		if e.Kind == jobhost.EventEnded {
			cancel(why)
		}
		return false
	})
	if !errors.Is(w.err, why) {
		s.Errorf("the stream ended with %v, want the cause of its context", w.err)
	}
	s.wantKinds(&w, "job", jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventSucceeded, jobhost.EventEnded)
	if len(w.events) != len(w.kindsOf("job")) {
		s.Errorf("there are events of other jobs: %+v", w.events)
	}
}
