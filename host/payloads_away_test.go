package host_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state/payload"
)

var errAway = errors.New("the server is away")

// awaitWhy returns when a job is where it is for a reason.
func (s *stored) awaitWhy(t *testing.T, id, code string) jobhost.Why {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		why, err := s.Why(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if why.Code == code {
			return why
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("why: %+v, want %s", why, code)
		}
	}
}

// small fails the test unless a small job of the worker succeeds now.
func (s *stored) small(t *testing.T) {
	t.Helper()
	if job := wait(t, s.Host, submit(t, s.Host, jobhost.Spec{Payload: []byte("x")})); job.State != jobhost.Succeeded {
		t.Fatalf("a small job: %+v", job)
	}
}

// wantCopied fails the test unless a job has succeeded in its first attempt, after so many runs.
func (s *stored) wantCopied(t *testing.T, id string, size, runs int) {
	t.Helper()
	job := wait(t, s.Host, id)
	task := job.Tasks[0]
	if job.State != jobhost.Succeeded || len(job.Failures) > 0 || task.Attempt != 1 || !bytes.Equal(s.result(t, id), bigText(size)) {
		t.Errorf("got %+v", job)
	}
	if runs > 0 && task.Course != int64(2*runs) {
		t.Errorf("course %d after %d runs", task.Course, runs)
	}
}

// TestPayloadCantBeRead: an attempt that meets a store which is away doesn't count, its
// task waits for the store, and small ones of the same worker go on.
func TestPayloadCantBeRead(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) { cfg.Workers[0].PoolSize = 1 })
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	first, second := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)}), submit(t, s.Host, jobhost.Spec{Payload: bigText(50_000)})
	s.objects.Fail(errAway)
	_, err := s.Submit(t.Context(), jobhost.Spec{Worker: "test", Payload: bigText(100_000)})
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || strings.Contains(jobhost.HintOf(err)+message(err), "server is away") {
		t.Errorf("submit: %v", err)
	}
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first, second} {
		if why := s.awaitWhy(t, id, "payload_store"); !strings.Contains(why.Reason, "payload store one can't be read") || strings.Contains(why.Reason, "server is away") {
			t.Errorf("why: %+v", why)
		}
	}
	held, err := s.Jobs(t.Context(), jobhost.Filter{State: jobhost.Held})
	if err != nil || len(held.Jobs) != 2 {
		t.Errorf("held: %+v, %v", held, err)
	}
	s.small(t)
	s.objects.Fail(nil)
	s.wantCopied(t, first, 100_000, 0)
	s.wantCopied(t, second, 50_000, 1) // the store was known to be away
}

// TestAsideEnds: what waits for a store can be cancelled, and has its deadline.
func TestAsideEnds(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	cancelled := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)})
	late := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000), Deadline: 2 * time.Second})
	again := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)})
	s.objects.FailOn(errAway, payload.Get)
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{cancelled, again} {
		s.awaitWhy(t, id, "payload_store")
		if job, err := s.Cancel(t.Context(), id); err != nil || job.State != jobhost.Cancelled {
			t.Errorf("cancel: %+v, %v", job, err)
		}
	}
	if job := wait(t, s.Host, late); job.State != jobhost.Dead || job.Failures[0].Code != jobhost.FailDeadline {
		t.Errorf("past its deadline: %+v", job)
	}
	if _, err := s.Retry(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	s.awaitWhy(t, again, "payload_store")
	s.objects.Fail(nil)
	s.wantCopied(t, again, 100_000, 0)
	if page, err := s.Jobs(t.Context(), jobhost.Filter{State: jobhost.Held}); err != nil || len(page.Jobs) > 0 {
		t.Errorf("held still: %+v, %v", page, err)
	}
}

// TestResultIsKept: a result that can't be stored waits for its store, while its slot
// runs others, and the guest doesn't run again.
func TestResultIsKept(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) { cfg.Workers[0].PoolSize = 1 })
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	ids := []string{
		submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)}),
		submit(t, s.Host, jobhost.Spec{Payload: bigText(200_000)}), // the store is known to be away
	}
	gone := submit(t, s.Host, jobhost.Spec{Payload: bigText(300_000)})
	s.objects.FailOn(errAway, payload.Put)
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(ids, gone) {
		s.awaitWhy(t, id, "result_waits")
		if job, err := s.Job(t.Context(), id); err != nil || job.State != jobhost.Running {
			t.Errorf("got %+v, %v", job, err)
		}
	}
	s.small(t)
	if _, err := s.Cancel(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	s.objects.Fail(nil)
	s.wantCopied(t, ids[0], 100_000, 1)
	s.wantCopied(t, ids[1], 200_000, 1)
	s.awaitObjects(t, 5) // three payloads and two results
}

// TestResultsWithoutRoom: a result that can't be kept makes its task run again when
// the store is back, and holds the large tasks of its worker until then.
func TestResultsWithoutRoom(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) {
		cfg.Workers[0].PoolSize, cfg.KeepBytes = 1, 1<<18 // one chunk for each result
	})
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	tooLarge, next := submit(t, s.Host, jobhost.Spec{Payload: bigText(200_000)}), []string(nil)
	for range 10 {
		next = append(next, submit(t, s.Host, jobhost.Spec{Payload: bigText(50_000)}))
	}
	s.objects.FailOn(errAway, payload.Put)
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	s.awaitWhy(t, tooLarge, "payload_store")
	for i, id := range next {
		code := "result_waits"
		if i >= 4 { // as many as there is room for
			code = "payload_store"
		}
		s.awaitWhy(t, id, code)
	}
	s.small(t)
	s.objects.Fail(nil)
	s.wantCopied(t, tooLarge, 200_000, 2)
	for _, id := range next {
		s.wantCopied(t, id, 50_000, 1)
	}
}

// TestStopWithKeptResults: a host that stops while results wait runs their tasks again
// after its start.
func TestStopWithKeptResults(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	id := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)})
	s.objects.FailOn(errAway, payload.Put)
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	s.awaitWhy(t, id, "result_waits")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.objects.Fail(nil)
	s.start(t)
	s.wantCopied(t, id, 100_000, 1)
}

// TestYoungPayload: an object that its store doesn't show yet is waited for.
func TestYoungPayload(t *testing.T) {
	t.Parallel()
	returned := make(chan jobhost.Event, 100)
	s := setupStored(t, func(cfg *host.Config) {
		cfg.OnEvent = func(e jobhost.Event) {
			if e.Kind == jobhost.EventReturned {
				returned <- e
			}
		}
	})
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	id := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)})
	keys, err := s.objects.List(t.Context(), "", 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	back := s.objects.Take(keys[0])
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-returned
	}
	back()
	s.wantCopied(t, id, 100_000, 0)
}

// TestChildCantBeStored: an attempt that fails since a job that it submits has a payload
// which its store doesn't take is none either.
func TestChildCantBeStored(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) {
		w := &cfg.Workers[0]
		w.Plugin, w.Entry, w.MaySubmit = guests.Effects, "get", []string{"test"}
	})
	if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	text := append([]byte("worker: test\nentry: add\n\nchildren"), bytes.Repeat([]byte(" "), 5000)...)
	id := submit(t, s.Host, jobhost.Spec{Entry: "submit_now_fail", MaxAttempts: 1, Payload: text})
	s.objects.FailOn(errAway, payload.Put)
	if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	s.awaitWhy(t, id, "payload_store")
	if job, err := s.Job(t.Context(), id); err != nil || job.State != jobhost.Held || len(job.Failures) > 0 {
		t.Errorf("got %+v, %v", job, err)
	}
	s.objects.Fail(nil)
	if job := wait(t, s.Host, id); job.State != jobhost.Dead || len(job.Failures) != 1 { // it fails in any case
		t.Errorf("got %+v", job)
	}
}
