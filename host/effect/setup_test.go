package effect_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a queue with worker "w", whose attempts a test makes by hand.
type fixture struct {
	*queue.Queue
	t    *testing.T
	slot *queue.Slot
	hits []effect.Limit
}

func setup(t *testing.T) *fixture {
	t.Helper()
	store := queuetest.NewMemory()
	retry := jobhost.DefaultRetry()
	retry.Initial = time.Millisecond
	q, err := queue.New(t.Context(), store, queue.Config{Workers: []queue.Worker{
		{Name: "w", Capacity: 10_000, Retry: retry, Timeout: time.Minute},
		{Name: "small", Capacity: 2, Retry: retry, Timeout: time.Minute},
		{Name: jobhost.HTTPWorker, Capacity: 10, Retry: retry, Timeout: time.Minute},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = q.Close(context.Background()), store.Close() })
	return &fixture{Queue: q, t: t, slot: q.Slot("w")}
}

// submit submits a job and returns its id.
func (f *fixture) submit(spec jobhost.Spec) string {
	f.t.Helper()
	spec.Worker = "w"
	receipt, err := f.Submit(f.t.Context(), spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return receipt.ID
}

// begin takes the next task.
func (f *fixture) begin(change ...func(*effect.Config)) (*effect.Attempt, *queue.Lease) {
	f.t.Helper()
	lease, err := f.slot.Take(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	cfg := effect.Config{Queue: f.Queue, Lease: lease, Hit: func(l effect.Limit) { f.hits = append(f.hits, l) }}
	for _, c := range change {
		c(&cfg)
	}
	return effect.New(cfg), lease
}

// start submits a job and begins its attempt.
func (f *fixture) start(change ...func(*effect.Config)) (*effect.Attempt, *queue.Lease) {
	f.t.Helper()
	f.submit(jobhost.Spec{})
	return f.begin(change...)
}

// settle ends an attempt and waits until nothing of it is under way.
func (f *fixture) settle(a *effect.Attempt, lease *queue.Lease, kind jobhost.OutcomeKind) jobhost.Job {
	f.t.Helper()
	report := queue.Report{Outcome: jobhost.Outcome{Kind: kind}, Effects: a.Take()}
	if kind == jobhost.OutcomeFailed {
		report.Outcome.Failure = &jobhost.Failure{Code: "test", Retryable: true}
	}
	f.Settle(lease, report)
	return f.settled(lease)
}

// settled waits until the attempt of a lease is settled.
func (f *fixture) settled(lease *queue.Lease) jobhost.Job {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		job, err := f.Job(f.t.Context(), lease.Job.ID)
		if err != nil {
			f.t.Fatal(err)
		}
		if job.Tasks[lease.Index].State != jobhost.Running {
			return job
		}
		<-tick.C
	}
}

func (f *fixture) set(key, value string) {
	f.t.Helper()
	if err := f.SetKey(f.t.Context(), "w", key, []byte(value), 0); err != nil {
		f.t.Fatal(err)
	}
}

// want checks the committed value of a key; "-" = there is none.
func (f *fixture) want(key, want string) {
	f.t.Helper()
	_, value, err := f.KeyValue(f.t.Context(), "w", key)
	if got := string(value); err == nil && got != want || err != nil && (want != "-" || jobhost.CodeOf(err) != jobhost.CodeNotFound) {
		f.t.Errorf("key %s is %q, %v; want %q", key, got, err, want)
	}
}

// wantCode checks the code of an error, "" = none, and that the limit was hit, -1 = none.
func (f *fixture) wantCode(what string, err error, code jobhost.Code, hit effect.Limit) {
	f.t.Helper()
	if got := jobhost.CodeOf(err); got != code {
		f.t.Errorf("%s: got %v with code %q, want code %q", what, err, got, code)
	}
	if hit >= 0 != (len(f.hits) > 0) || hit >= 0 && !slices.Contains(f.hits, hit) {
		f.t.Errorf("%s: limits %v were hit, want %d", what, f.hits, hit)
	}
	f.hits = nil
}

const none = effect.Limit(-1)
