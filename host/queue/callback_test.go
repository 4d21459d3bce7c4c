package queue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// hooks allows URLs of example.com, and tells of dead letters if dead is set.
type hooks struct{ denies, dead bool }

func (h *hooks) Judge(u httpurl.URL) error {
	if h.denies || u.Host != "example.com" {
		return &jobhost.Error{Code: jobhost.CodeDenied, Field: "callback", Message: "no"}
	}
	return nil
}

func (*hooks) Ended(url string, ended *jobhost.Ended) jobhost.Spec {
	return delivery(url, jobhost.MessageEnded, ended)
}

func (h *hooks) Dead(letter *jobhost.DeadLetter) (jobhost.Spec, bool) {
	return delivery("https://example.com/dead", jobhost.MessageDead, letter), h.dead
}

func delivery(url, kind string, data any) jobhost.Spec {
	text, err := json.Marshal(data)
	if err != nil {
		text = nil
	}
	return jobhost.Spec{
		Worker: jobhost.WebhookWorker, Payload: append([]byte(kind+" "+url+" "), text...),
		Labels: map[string]string{jobhost.LabelWebhook: kind},
	}
}

// told is a queue with workers w and that of the deliveries, which has room for two.
func told(t *testing.T, h *hooks, change ...func(*queue.Config)) *fixture {
	t.Helper()
	return setup(t, append(change, withHooks(h))...)
}

func withHooks(h *hooks) func(*queue.Config) {
	return func(cfg *queue.Config) {
		cfg.Webhooks = h
		cfg.Workers = append(cfg.Workers, queue.Worker{
			Name: jobhost.WebhookWorker, Capacity: 2, Retry: jobhost.DefaultRetry(), Timeout: time.Minute,
		})
	}
}

// next takes a delivery and lets it succeed; its payload is returned.
func (f *fixture) next(slot *queue.Slot) string {
	f.t.Helper()
	lease := f.take(slot)
	f.settle(lease, succeeded(""))
	return string(lease.Job.Payload)
}

// noneLeft fails the test if a worker has tasks.
func (f *fixture) noneLeft(worker string) {
	f.t.Helper()
	if n := f.Stats(worker).Counts(); n.Total() != 0 {
		f.t.Errorf("worker %s has the tasks %v", worker, n)
	}
}

func begins(t *testing.T, got string, want ...string) {
	t.Helper()
	for i, part := range want {
		if i == 0 && !strings.HasPrefix(got, part) || !strings.Contains(got, part) {
			t.Errorf("got %q, want %q in it", got, part)
		}
	}
}

// A URL is notified once of the end of a job, in whichever way it comes, and of each
// dead letter before that.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := told(t, &hooks{dead: true})
		work, post := f.Slot("w"), f.Slot(jobhost.WebhookWorker)
		callback := jobhost.Callback{URL: "https://example.com/hook"}

		f.submit(jobhost.Spec{ID: "a", Tasks: 2, Callback: callback, Labels: map[string]string{"team": "red"}})
		f.settle(f.take(work), failed(false))
		begins(t, f.next(post), "task.dead https://example.com/dead ", `"job":"a"`, `"task":0`, `"code":"broken"`, `"attempts":1`, `"team":"red"`)
		f.noneLeft(jobhost.WebhookWorker)
		f.settle(f.take(work), failed(false))
		begins(t, f.next(post), "task.dead ", `"task":1`)
		begins(t, f.next(post), "job.ended https://example.com/hook ", `"job":"a"`, `"state":"dead"`, `"tasks":{"dead":2}`)
		f.noneLeft(jobhost.WebhookWorker)

		f.submit(jobhost.Spec{ID: "b", Callback: callback})
		f.settle(f.take(work), failed(true)) // not its end
		f.noneLeft(jobhost.WebhookWorker)
		f.settle(f.take(work), succeeded("done"))
		begins(t, f.next(post), "job.ended ", `"job":"b"`, `"result":"done"`)

		f.submit(jobhost.Spec{ID: "c", Delay: time.Hour, Callback: callback})
		if _, err := f.Cancel(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		begins(t, f.next(post), "job.ended ", `"state":"cancelled"`)

		f.submit(jobhost.Spec{ID: "d", Delay: time.Hour, Deadline: 2 * time.Hour})
		setMode(t, f.Queue, jobhost.WorkerPaused)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		begins(t, f.next(post), "task.dead ", `"job":"d"`, `"code":"deadline"`)
		f.noneLeft(jobhost.WebhookWorker)
	})
}

// Deliveries that died make no delivery of their own.
func TestNobodyIsToldOfDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := told(t, &hooks{dead: true})
		f.submit(jobhost.Spec{ID: "a"})
		f.settle(f.take(f.Slot("w")), failed(false))
		post := f.Slot(jobhost.WebhookWorker)
		lease := f.take(post)
		f.settle(lease, failed(false))
		f.noneLeft(jobhost.WebhookWorker)
		if job := f.job(lease.Job.ID); job.State != jobhost.Dead || job.Callback != nil {
			t.Errorf("the delivery is %+v", job)
		}
		if _, err := f.Retry(t.Context(), lease.Job.ID); err != nil { // as any other's
			t.Fatal(err)
		}
		if again := f.take(post); again.Job.ID != lease.Job.ID {
			t.Errorf("got %s, want %s", again.Job.ID, lease.Job.ID)
		}
	})
}

// A delivery is there after a restart, since it came with the end that it tells of.
func TestDeliveriesSurviveARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{dead: true}
		f := told(t, h)
		f.submit(jobhost.Spec{ID: "a", Callback: jobhost.Callback{URL: "https://example.com/hook"}})
		f.settle(f.take(f.Slot("w")), failed(false))
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := reopen(t, f.store, withHooks(h))
		post := g.Slot(jobhost.WebhookWorker)
		begins(t, g.next(post), "task.dead ")
		begins(t, g.next(post), "job.ended ")
		g.noneLeft(jobhost.WebhookWorker)
		if job := g.job("a"); job.Callback == nil || job.Callback.URL != "https://example.com/hook" {
			t.Errorf("the job is %+v", job)
		}
	})
}

// Where URLs are judged: with every way to submit, and before anything is there.
func TestCallbackIsJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := told(t, &hooks{})
		bad := jobhost.Spec{Worker: "w", ID: "bad", Callback: jobhost.Callback{URL: "https://example.org/hook"}}
		good := jobhost.Spec{Worker: "w", ID: "good", Callback: jobhost.Callback{URL: "https://example.com/hook"}}
		_, err := f.Submit(t.Context(), bad)
		wantCode(t, err, jobhost.CodeDenied)
		answers, err := f.SubmitBatch(t.Context(), []jobhost.Spec{bad, good})
		if err != nil || answers[1].Err != nil {
			t.Fatalf("%+v, %v", answers, err)
		}
		wantCode(t, answers[0].Err, jobhost.CodeDenied)
		_, err = f.Child(t.Context(), bad, &record.Parent{ID: "good"})
		wantCode(t, err, jobhost.CodeDenied)
		_, err = f.SubmitChild(t.Context(), bad, &record.Parent{ID: "good"})
		wantCode(t, err, jobhost.CodeDenied)
		fired, err := f.Fire(t.Context(), []queue.Firing{{State: record.ScheduleState{Name: "s"}, Specs: []jobhost.Spec{bad}}})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, fired[0].Err, jobhost.CodeDenied)
		_, err = f.Job(t.Context(), "bad")
		wantCode(t, err, jobhost.CodeNotFound)
	})
}

// A URL that is written otherwise is the same one, and a job that is there is
// found again whatever is allowed by now.
func TestCallbackOfAResubmit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{}
		f := told(t, h)
		spec := jobhost.Spec{Worker: "w", ID: "a", Callback: jobhost.Callback{URL: "https://example.com/hook"}}
		f.submit(spec)
		for _, denies := range []bool{false, true} {
			h.denies = denies
			spec.Callback.URL = "HTTPS://Example.com.:443/%68ook"
			if r, err := f.Submit(t.Context(), spec); err != nil || !r.Deduplicated {
				t.Errorf("submitted again: %+v, %v", r, err)
			}
			spec.Callback.URL = "https://example.com/other"
			_, err := f.Submit(t.Context(), spec)
			wantCode(t, err, jobhost.CodeConflict)
		}
	})
}

// While too many deliveries wait, or their worker drains, no further job may ask for one.
func TestRoomForDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := told(t, &hooks{})
		spec := jobhost.Spec{Worker: "w", Callback: jobhost.Callback{URL: "https://example.com/hook"}}
		work, post := f.Slot("w"), f.Slot(jobhost.WebhookWorker)
		for range 3 { // the ends of accepted jobs are delivered, over the capacity if need be
			f.submit(spec)
		}
		for range 3 {
			f.settle(f.take(work), succeeded(""))
		}
		_, err := f.Submit(t.Context(), spec)
		wantCode(t, err, jobhost.CodeExhausted)
		f.submit(jobhost.Spec{}) // others go on
		f.next(post)
		f.next(post)
		f.submit(spec)
		if err := f.SetMode(t.Context(), jobhost.WebhookWorker, jobhost.WorkerDraining); err != nil {
			t.Fatal(err)
		}
		_, err = f.Submit(t.Context(), spec)
		wantCode(t, err, jobhost.CodeUnavailable)
	})
}

// The host's own workers take no jobs but the host's, and are not offered.
func TestReservedWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := told(t, &hooks{})
		for _, spec := range []jobhost.Spec{
			{Worker: jobhost.WebhookWorker},
			{Worker: "jobhost.other"},
			{Worker: "w", Callback: jobhost.Callback{Worker: jobhost.WebhookWorker}},
		} {
			_, err := f.Submit(t.Context(), spec)
			wantCode(t, err, jobhost.CodeDenied)
			_, err = f.Child(t.Context(), spec, &record.Parent{ID: "p"})
			wantCode(t, err, jobhost.CodeDenied)
		}
		_, err := f.Submit(t.Context(), jobhost.Spec{Worker: "nobody"})
		if hint := jobhost.HintOf(err); hint != "this host has: w" {
			t.Errorf("the hint is %q", hint)
		}
	})
}

// Who asks for patience gets it, and never less than the policy says.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{})
		slot := f.Slot("w")
		for _, tt := range []struct{ after, want time.Duration }{
			{time.Minute, time.Minute}, // the policy says 1 s
			{time.Millisecond, 2 * time.Second},
		} {
			outcome := failed(true)
			outcome.RetryAfter = tt.after
			f.settle(f.take(slot), outcome)
			began := time.Now()
			lease := f.take(slot)
			if got := time.Since(began); got != tt.want {
				t.Errorf("the attempt came after %v, want %v", got, tt.want)
			}
			f.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeReturned}})
		}
	})
}
