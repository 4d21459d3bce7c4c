package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// talker returns the spec of a fiber that publishes what it is sent.
func talker(id string) jobhost.FiberSpec {
	return jobhost.FiberSpec{ID: id, Worker: "test", Entry: "fiber", Init: []byte("bye")}
}

func (s *setup) start(spec jobhost.FiberSpec) jobhost.Fiber {
	s.Helper()
	f, err := s.server.StartFiber(s.ctx, spec)
	s.check(err)
	return f
}

func (s *setup) send(id string, messages ...string) {
	s.Helper()
	for _, m := range messages {
		s.check(s.server.SendFiber(s.ctx, id, []byte(m), false))
	}
}

func (s *setup) fiber(id string) jobhost.Fiber {
	s.Helper()
	f, err := s.server.Fiber(s.ctx, id)
	s.check(err)
	return f
}

// outputs returns what a fiber published after an output, up to some number of
// them, and the error that ended it if there were fewer.
func (s *setup) outputs(id string, after uint64, n int) (texts []string, err error) {
	s.Helper()
	if n == 0 {
		return nil, nil
	}
	for o, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: id, Replay: true, After: after}) {
		if err != nil {
			return texts, err
		}
		if o.Seq != after+uint64(len(texts))+1 || o.Time.IsZero() {
			s.Errorf("output %d of %s has number %d at %v", len(texts), id, o.Seq, o.Time)
		}
		if texts = append(texts, string(o.Data)); len(texts) == n {
			return texts, nil
		}
	}
	s.Errorf("the outputs of %s ended without an error", id)
	return texts, nil
}

func (s *setup) wantOutputs(id string, after uint64, want ...string) {
	s.Helper()
	got, err := s.outputs(id, after, len(want))
	s.check(err)
	if !slices.Equal(got, want) {
		s.Fatalf("fiber %s published %q, want %q", id, got, want)
	}
}

// over waits for the end of a fiber and returns what is known of it then.
func (s *setup) over(id string) jobhost.Fiber {
	s.Helper()
	for _, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: id}) {
		if err != nil && !errors.Is(err, jobhost.ErrFiberEnded) {
			s.Fatalf("the outputs of %s ended with %v", id, err)
		}
	}
	f := s.fiber(id)
	if !f.Status.Ended() || f.EndedAt == nil {
		s.Fatalf("fiber %s is %+v, want it to have ended", id, f)
	}
	return f
}

// becomes waits until a fiber has a status.
func (s *setup) becomes(id string, status jobhost.FiberStatus) jobhost.Fiber {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		f := s.fiber(id)
		if f.Status == status {
			return f
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatalf("fiber %s is %s, want %s", id, f.Status, status)
		}
	}
}

func testFibers(s *setup) {
	began := time.Now()
	spec := talker("talk")
	spec.Labels = map[string]string{"room": "größe"}
	f := s.start(spec)
	if f.ID != "talk" || f.Worker != "test" || f.Entry != "fiber" || f.Labels["room"] != "größe" || f.CreatedAt.Before(began) || f.StartedAt == nil {
		s.Errorf("started %+v", f)
	}
	again := s.start(spec)
	if !again.CreatedAt.Equal(f.CreatedAt) {
		s.Errorf("a start that was repeated gave %+v after %+v", again, f)
	}
	other := spec
	other.Init = nil
	_, err := s.server.StartFiber(s.ctx, other)
	s.wantCode(err, jobhost.CodeConflict)

	s.send("talk", "one", "", "\xff\x00")
	s.wantOutputs("talk", 0, "one", "", "\xff\x00")
	idle := s.becomes("talk", jobhost.FiberIdle)
	if idle.Received != 3 || idle.Emitted != 3 || idle.Waiting != 0 || idle.Restarts != 0 || idle.Failure != nil || idle.EndedAt != nil {
		s.Errorf("got %+v", idle)
	}
	s.send("talk", "end")
	end := s.over("talk")
	if end.Status != jobhost.FiberCompleted || string(end.Result) != "bye" || end.Failure != nil || end.Received != 4 || end.Emitted != 3 || end.Subscribers != 0 {
		s.Errorf("ended as %+v", end)
	}
	page, err := s.server.Fibers(s.ctx, jobhost.FiberFilter{})
	s.check(err)
	if len(page.Fibers) != 1 || page.Fibers[0].Status != jobhost.FiberCompleted || page.Fibers[0].Result != nil || page.Next != "" {
		s.Errorf("got the list %+v, want one without its result", page)
	}
	if anew := s.start(other); anew.CreatedAt.Equal(f.CreatedAt) || anew.Emitted != 0 {
		s.Errorf("started anew it is %+v", anew)
	}
}

// testFiberEnds wants each way to end to be told, to those who watch too.
func testFiberEnds(s *setup) {
	tests := []struct {
		message string
		status  jobhost.FiberStatus
		code    string
	}{
		{"end", jobhost.FiberCompleted, ""},
		{"fail", jobhost.FiberFailed, jobhost.FailWorker},
		{"trap", jobhost.FiberFailed, jobhost.FailTrap},
	}
	for _, test := range tests {
		s.start(talker(test.message))
		s.send(test.message, test.message)
		f := s.over(test.message)
		if f.Status != test.status || (f.Failure == nil) != (test.code == "") || f.Failure != nil && f.Failure.Code != test.code {
			s.Errorf("after %s it is %+v (%+v)", test.message, f, f.Failure)
		}
	}
	none := talker("none")
	none.Entry = "no_such_entry"
	s.start(none)
	if f := s.over("none"); f.Status != jobhost.FiberFailed || f.Failure == nil || f.Failure.Code != jobhost.FailNoEntry {
		s.Errorf("without entry it is %+v", f)
	}
}

// testFiberErrors wants the errors of what is not there, and of what has ended.
func testFiberErrors(s *setup) {
	ask := func(id string) map[string]error {
		_, get := s.server.Fiber(s.ctx, id)
		_, pause := s.server.PauseFiber(s.ctx, id)
		_, resume := s.server.ResumeFiber(s.ctx, id)
		_, interrupt := s.server.InterruptFiber(s.ctx, id)
		_, watch := s.outputs(id, 0, 1)
		return map[string]error{
			"get": get, "pause": pause, "resume": resume, "interrupt": interrupt, "watch": watch,
			"send": s.server.SendFiber(s.ctx, id, []byte("x"), false), "wait": s.server.SendFiber(s.ctx, id, []byte("x"), true),
		}
	}
	for what, err := range ask("nobody") {
		if jobhost.CodeOf(err) != jobhost.CodeNotFound || errors.Is(err, jobhost.ErrFiberEnded) {
			s.Errorf("%s of a fiber that never was: %v", what, err)
		}
	}
	s.start(talker("gone"))
	s.send("gone", "end")
	s.over("gone")
	want := map[string]jobhost.Code{
		"get": "", "interrupt": "", "pause": jobhost.CodeConflict, "resume": jobhost.CodeConflict,
		"watch": jobhost.CodeNotFound, "send": jobhost.CodeNotFound, "wait": jobhost.CodeNotFound,
	}
	for what, err := range ask("gone") {
		if jobhost.CodeOf(err) != want[what] || err != nil && !errors.Is(err, jobhost.ErrFiberEnded) {
			s.Errorf("%s of a fiber that has ended: %v, want %q", what, err, want[what])
		}
	}
}

func testFibersRefused(s *setup) {
	for _, test := range []struct {
		change func(*jobhost.FiberSpec)
		want   jobhost.Code
	}{
		{func(f *jobhost.FiberSpec) { f.ID = "" }, jobhost.CodeInvalid},
		{func(f *jobhost.FiberSpec) { f.ID = "a/b" }, jobhost.CodeInvalid},
		{func(f *jobhost.FiberSpec) { f.Worker = "nobody" }, jobhost.CodeNotFound},
		{func(f *jobhost.FiberSpec) { f.Worker = jobhost.WebhookWorker }, jobhost.CodeNotFound},
		{func(f *jobhost.FiberSpec) { f.Worker = "" }, jobhost.CodeInvalid},
		{func(f *jobhost.FiberSpec) { f.Init = make([]byte, jobhost.MaxFiberMessage+1) }, jobhost.CodeTooLarge},
		{func(f *jobhost.FiberSpec) { f.Labels = map[string]string{"": "x"} }, jobhost.CodeInvalid},
		{func(f *jobhost.FiberSpec) { f.Restart.When = "sometimes" }, jobhost.CodeInvalid},
		{func(f *jobhost.FiberSpec) { f.Restart.Intensity = -1 }, jobhost.CodeInvalid},
	} {
		spec := talker("refused")
		test.change(&spec)
		_, err := s.server.StartFiber(s.ctx, spec)
		s.wantCode(err, test.want)
	}
	for _, filter := range []jobhost.FiberFilter{{Worker: "A"}, {Status: "asleep"}, {Limit: -1}, {Limit: jobhost.MaxPage + 1}} {
		_, err := s.server.Fibers(s.ctx, filter)
		s.wantCode(err, jobhost.CodeInvalid)
	}
	spec := talker("large")
	spec.Init = bytes.Repeat([]byte{0xff}, jobhost.MaxFiberMessage) // which is longest in JSON
	if f := s.start(spec); f.ID != "large" {
		s.Errorf("got %+v", f)
	}
	s.wantCode(s.server.SendFiber(s.ctx, "large", make([]byte, jobhost.MaxFiberMessage+1), false), jobhost.CodeTooLarge)
}

// fill spins a fiber and fills its queue, and returns the error when that is full.
func (s *setup) fill(id string) error {
	s.Helper()
	s.start(talker(id))
	s.send(id, "spin")
	s.wantOutputs(id, 0, "spinning")
	for range 64 {
		s.send(id, "more")
	}
	return s.server.SendFiber(s.ctx, id, []byte("too many"), false)
}

// testFiberFull wants the reasons to refuse a message in their order: paused, then full.
func testFiberFull(s *setup) {
	err := s.fill("full")
	s.wantCode(err, jobhost.CodeExhausted)
	if f := s.fiber("full"); f.Status != jobhost.FiberRunning || f.Waiting != 64 || f.Received != 65 {
		s.Errorf("got %+v", f)
	}
	for range 2 {
		f, err := s.server.PauseFiber(s.ctx, "full")
		s.check(err)
		if f.Status != jobhost.FiberPaused {
			s.Errorf("paused it is %s", f.Status)
		}
	}
	s.wantCode(s.server.SendFiber(s.ctx, "full", nil, false), jobhost.CodeConflict)
	s.wantCode(s.server.SendFiber(s.ctx, "full", nil, true), jobhost.CodeConflict)
	for range 2 {
		f, err := s.server.ResumeFiber(s.ctx, "full")
		s.check(err)
		if f.Status != jobhost.FiberRunning {
			s.Errorf("resumed it is %s", f.Status)
		}
	}
	s.wantCode(s.server.SendFiber(s.ctx, "full", nil, false), jobhost.CodeExhausted)
	late := errors.New("waited long enough")
	ctx, cancel := context.WithTimeoutCause(s.ctx, 50*time.Millisecond, late)
	defer cancel()
	if err := s.server.SendFiber(ctx, "full", nil, true); !errors.Is(err, late) {
		s.Errorf("a wait for room ended with %v, want the cause of its context", err)
	}
	// Callers that wait learn of the end.
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { s.wantCode(s.server.SendFiber(s.ctx, "full", nil, true), jobhost.CodeNotFound) })
	_, err = s.server.InterruptFiber(s.ctx, "full")
	s.check(err)
	f := s.over("full")
	if f.Status != jobhost.FiberKilled || f.Waiting != 64 || f.Failure == nil || f.Failure.Code != "interrupted" {
		s.Errorf("it ended as %+v", f)
	}
}

// testFiberInterrupt wants a fiber that waits to end by itself, and what it was sent
// before to be worked on.
func testFiberInterrupt(s *setup) {
	s.start(talker("told"))
	s.becomes("told", jobhost.FiberIdle)
	f, err := s.server.InterruptFiber(s.ctx, "told")
	s.check(err)
	if f.ID != "told" {
		s.Errorf("got %+v", f)
	}
	if f = s.over("told"); f.Status != jobhost.FiberKilled || f.Failure == nil || f.Failure.Code != "interrupted" || len(f.Result) > 0 {
		s.Errorf("it ended as %+v", f)
	}
	// A start of one that ends waits for that.
	s.start(talker("told"))
	_, err = s.server.InterruptFiber(s.ctx, "told")
	s.check(err)
	s.start(talker("told"))
	s.send("told", "hello")
	s.wantOutputs("told", 0, "hello")
}

// testFiberRestarts wants the queue and those who watch to outlast a restart.
func testFiberRestarts(s *setup) {
	spec := talker("again")
	spec.Restart = jobhost.RestartPolicy{When: jobhost.RestartOnFailure, Initial: jobhost.Duration(time.Millisecond), Intensity: 2}
	s.start(spec)
	s.send("again", "one", "trap", "two")
	s.wantOutputs("again", 0, "one", "two")
	f := s.becomes("again", jobhost.FiberIdle)
	if f.Restarts != 1 || f.Failure == nil || f.Failure.Code != jobhost.FailTrap || f.Received != 3 {
		s.Errorf("after a trap it is %+v", f)
	}
	s.send("again", "fail", "three")
	s.wantOutputs("again", 2, "three")
	s.send("again", "fail")
	if f = s.over("again"); f.Status != jobhost.FiberFailed || f.Restarts != 2 || f.Failure == nil || f.Failure.Code != jobhost.FailWorker {
		s.Errorf("after too many it is %+v (%+v)", f, f.Failure)
	}

	// While it waits for its restart its queue takes messages, and then has room again.
	spec = talker("late")
	spec.Restart = jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: jobhost.Duration(200 * time.Millisecond)}
	s.start(spec)
	s.send("late", "end")
	s.becomes("late", jobhost.FiberStarting)
	for i := range 64 {
		s.check(s.server.SendFiber(s.ctx, "late", fmt.Append(nil, i), false))
	}
	s.check(s.server.SendFiber(s.ctx, "late", []byte("last"), true))
	for o, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: "late", Replay: true}) {
		s.check(err)
		if string(o.Data) == "last" {
			break
		}
	}
}

// testFibersMax wants the eleventh fiber to wait until one ends.
func testFibersMax(s *setup) {
	for i := range 10 {
		s.start(talker(fmt.Sprint("f-", i)))
	}
	late := errors.New("waited long enough")
	ctx, cancel := context.WithTimeoutCause(s.ctx, 50*time.Millisecond, late)
	defer cancel()
	if _, err := s.server.StartFiber(ctx, talker("eleventh")); !errors.Is(err, late) {
		s.Errorf("a start over the most ended with %v, want the cause of its context", err)
	}
	s.becomesMissing("eleventh") // over HTTP the server notices later than the caller that a call was cancelled
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { s.start(talker("eleventh")) })
	s.becomesThere("eleventh")
	s.send("eleventh", "early") // its queue is open
	s.send("f-3", "end")
	s.wantOutputs("eleventh", 0, "early")
}

// becomesThere waits until a fiber is there.
func (s *setup) becomesThere(id string) {
	s.Helper()
	s.awaitPresence(id, true)
}

// becomesMissing waits until a fiber is not there any more.
func (s *setup) becomesMissing(id string) {
	s.Helper()
	s.awaitPresence(id, false)
}

func (s *setup) awaitPresence(id string, want bool) {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.server.Fiber(s.ctx, id)
		if err != nil {
			s.wantCode(err, jobhost.CodeNotFound)
		}
		if there := err == nil; there == want {
			return
		}
		<-tick.C
	}
}

func testListFibers(s *setup) {
	for _, id := range []string{"c", "a", "B", "e", "d"} {
		s.start(talker(id))
	}
	s.send("d", "end")
	s.over("d")
	for _, id := range []string{"a", "B", "c", "e"} {
		s.becomes(id, jobhost.FiberIdle)
	}
	for _, test := range []struct {
		filter jobhost.FiberFilter
		want   string
	}{
		{jobhost.FiberFilter{}, "[B a c d e]"},
		{jobhost.FiberFilter{Worker: "test", Status: jobhost.FiberIdle}, "[B a c e]"},
		{jobhost.FiberFilter{Status: jobhost.FiberCompleted}, "[d]"},
		{jobhost.FiberFilter{Worker: "other"}, "[]"},
		{jobhost.FiberFilter{Cursor: "c"}, "[d e]"},
	} {
		for _, limit := range []int{0, 1, 2, 5} {
			filter, ids := test.filter, []string{}
			filter.Limit = limit
			for {
				page, err := s.server.Fibers(s.ctx, filter)
				s.check(err)
				for i := range page.Fibers {
					ids = append(ids, page.Fibers[i].ID)
				}
				if filter.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			if got := fmt.Sprint(ids); got != test.want {
				s.Errorf("%+v, %d at a time: got %s, want %s", test.filter, limit, got, test.want)
			}
		}
	}
}

// testWatchFiber wants what a query asks for, and nothing of another fiber of the id.
func testWatchFiber(s *setup) {
	first := s.start(talker("seen"))
	s.send("seen", "1", "2", "3")
	s.wantOutputs("seen", 0, "1", "2", "3")
	s.wantOutputs("seen", 2, "3")
	for o, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: "seen", After: 1}) {
		s.check(err)
		if o.Seq != 2 {
			s.Errorf("after 1 came %d", o.Seq)
		}
		break
	}
	// Without a past there is only what comes.
	ctx, cancel := context.WithCancel(s.ctx)
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			s.check(s.server.SendFiber(s.ctx, "seen", []byte("probe"), true))
		}
	})
	for o, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: "seen"}) {
		s.check(err)
		if o.Seq < 4 || string(o.Data) != "probe" {
			s.Errorf("from now on came %d %q", o.Seq, o.Data)
		}
		break
	}
	cancel()
	group.Wait()
	gone := errors.New("the reader had enough")
	ctx2, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	for _, err := range s.server.WatchFiber(ctx2, jobhost.FiberQuery{ID: "seen", Replay: true}) {
		if stop(gone); err != nil && !errors.Is(err, gone) {
			s.Errorf("a watch ended with %v, want the cause of its context", err)
		}
	}
	s.check(s.server.SendFiber(s.ctx, "seen", []byte("end"), true))
	s.over("seen")
	s.start(talker("seen"))
	for _, err := range s.server.WatchFiber(s.ctx, jobhost.FiberQuery{ID: "seen", Replay: true, CreatedAt: first.CreatedAt}) {
		if !errors.Is(err, jobhost.ErrFiberEnded) {
			s.Errorf("a watch of the fiber before: %v", err)
		}
	}
}
