package hosttest

import (
	"context"
	"errors"
	"iter"

	"github.com/jobhost/jobhost"
)

// stateWatch reads a stream of states, one event at a time.
type stateWatch struct {
	*setup
	next   func() (jobhost.StateEvent, error, bool)
	cursor string // of the last event that had one
}

func (s *setup) watchStates(query jobhost.StateQuery) *stateWatch {
	return s.watchStatesUntil(s.ctx, query)
}

func (s *setup) watchStatesUntil(ctx context.Context, query jobhost.StateQuery) *stateWatch {
	next, stop := iter.Pull2(s.server.WatchStates(ctx, query))
	s.Cleanup(stop)
	return &stateWatch{setup: s, next: next}
}

// want reads as many events, and compares them.
func (w *stateWatch) want(events ...string) {
	w.Helper()
	for _, want := range events {
		e, err, ok := w.next()
		if err != nil || !ok {
			w.Fatalf("the states ended with %v, want %s", err, want)
		}
		if e.Cursor != "" {
			w.cursor = e.Cursor
		}
		got := brief(&e.State)
		switch {
		case e.Sentinel && e.Replay && e.Cursor != "" && e.State.Tag == "":
			got = "sentinel"
		case e.Replay:
			got = "replay " + got
		case e.Cursor == "":
			w.Errorf("event %+v has no cursor", e)
		}
		if got != want {
			w.Fatalf("got %s (%+v), want %s", got, e, want)
		}
	}
}

// end reads on until the stream ends, and returns why.
func (w *stateWatch) end() error {
	for {
		_, err, ok := w.next()
		if err != nil || !ok {
			return err
		}
	}
}

func testWatchStates(s *setup) {
	for i, tag := range []string{"b", "a", "c"} {
		s.put("j", i, tag, int32(i+1))
	}
	s.put("j", 1, "a", 9)
	one := 1
	all := s.watchStates(jobhost.StateQuery{Job: "j"})
	all.want("replay 0/b=1", "replay 2/c=3", "replay 1/a=9", "sentinel") // oldest first
	ofTask := s.watchStates(jobhost.StateQuery{Job: "j", Task: &one})
	ofTask.want("replay 1/a=9", "sentinel")
	ofTag := s.watchStates(jobhost.StateQuery{Job: "j", Tag: "c"})
	ofTag.want("replay 2/c=3", "sentinel")
	ofNothing := s.watchStates(jobhost.StateQuery{Job: "j", Task: &one, Tag: "c"})
	ofNothing.want("sentinel")
	s.put("j", 2, "c", 4)
	s.put("j", 1, "c", jobhost.StatusError)
	s.put("j", 1, "a", jobhost.StatusFinished)
	all.want("2/c=4", "1/c=-1", "1/a=2147483647")
	ofTask.want("1/c=-1", "1/a=2147483647")
	ofTag.want("2/c=4", "1/c=-1")
	ofNothing.want("1/c=-1")

	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	ended := s.watchStatesUntil(ctx, jobhost.StateQuery{Job: "j", Tag: "b"})
	ended.want("replay 0/b=1", "sentinel")
	cancel(why)
	if err := ended.end(); !errors.Is(err, why) {
		s.Errorf("the stream ended with %v, want the cause of its context", err)
	}
}

// testWatchStatesAgain goes on where another stream ended.
func testWatchStatesAgain(s *setup) {
	s.put("j", 0, "a", 1)
	s.put("j", 1, "a", 1)
	first := s.watchStates(jobhost.StateQuery{Job: "j"})
	first.want("replay 0/a=1", "replay 1/a=1", "sentinel")
	nothingNew := s.watchStates(jobhost.StateQuery{Job: "j", After: first.cursor})
	nothingNew.want("sentinel")
	s.put("j", 2, "b", 3)
	s.put("j", 1, "a", 2)
	first.want("2/b=3")
	between := s.watchStates(jobhost.StateQuery{Job: "j", After: first.cursor})
	between.want("replay 1/a=2", "sentinel")
	before := s.watchStates(jobhost.StateQuery{Job: "j", After: nothingNew.cursor})
	before.want("replay 2/b=3", "replay 1/a=2", "sentinel")
	elsewhere := s.watchStates(jobhost.StateQuery{Job: "j", After: "otherepoch-1"})
	elsewhere.want("replay 0/a=1", "replay 2/b=3", "replay 1/a=2", "sentinel")
	s.put("j", 0, "a", 4)
	between.want("0/a=4")
	elsewhere.want("0/a=4")
}

// testWatchStatesOfJob watches how a job of the queue goes.
func testWatchStatesOfJob(s *setup) {
	s.operate("pause")
	good, bad := spec("echo", "x"), spec("fail_permanent", "no luck")
	good.ID, bad.ID = "good", "bad"
	s.submit(good)
	s.submit(bad)
	ofGood, ofBad := s.watchStates(jobhost.StateQuery{Job: "good"}), s.watchStates(jobhost.StateQuery{Job: "bad", Tag: jobhost.TagRun})
	ofGood.want("sentinel")
	ofBad.want("sentinel")
	s.operate("resume")
	ofGood.want("0/_run=1", "0/_run=2147483647")
	ofBad.want("0/_run=1", "0/_run=-1")
	_, err := s.server.Retry(s.ctx, "bad")
	s.check(err)
	ofBad.want("0/_run=0", "0/_run=1", "0/_run=-1")
}
