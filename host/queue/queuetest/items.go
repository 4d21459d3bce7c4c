package queuetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// items gives each task of a job a payload.
func items(all ...[]byte) func(*record.JobSpec) {
	return func(s *record.JobSpec) { s.Payload, s.Items, s.Tasks = nil, all, len(all) }
}

// genStepOptions draws the options that only jobs of steps have.
func genStepOptions(t *rapid.T, s *record.JobSpec) {
	if rapid.IntRange(0, 2).Draw(t, "has items") == 0 {
		s.Payload, s.Ref = nil, ""
		item := rapid.SliceOfN(rapid.Byte(), 0, 4)
		s.Items = rapid.SliceOfN(item, s.Tasks, s.Tasks).Draw(t, "items")
	}
	s.MaxParallel = rapid.SampledFrom([]int{0, 0, 1, 2, 100}).Draw(t, "max parallel")
	s.Retry = rapid.SampledFrom([]*jobhost.RetryPolicy{nil, nil, someRetry(), {MaxAttempts: 2}}).Draw(t, "retry")
	s.Breaker = rapid.SampledFrom([]*jobhost.BreakerPolicy{nil, nil, someBreaker()}).Draw(t, "breaker")
}

func someRetry() *jobhost.RetryPolicy {
	return &jobhost.RetryPolicy{
		MaxAttempts: 4, Backoff: jobhost.BackoffLinear, Initial: time.Second, Multiplier: 1.5,
		Increment: 3 * time.Millisecond, Max: time.Hour, Jitter: 0.25,
	}
}

func someBreaker() *jobhost.BreakerPolicy {
	return &jobhost.BreakerPolicy{Key: "flow.ü", Failures: 3, Timeout: time.Minute, Probes: 2, WhenOpen: jobhost.FailWhenOpen}
}

// reopened returns what a store has left behind, or itself where it leaves nothing.
func (s store) reopened(h Harness) store {
	if h.Reopen == nil {
		return s
	}
	return store{Store: h.Reopen(s.t, s.Store), t: s.t}
}

// testItems looks for the payloads of tasks: at the right ones, as long as they
// are open, and with a store that was opened again.
func testItems(t *testing.T, h Harness) {
	s := open(t, h)
	s.submit(spec("before", "w", tasks(3)))
	key := s.submit(spec("a", "w", items([]byte("zero"), []byte{}, nil, bytes.Repeat([]byte{255, 0}, 40_000))))
	want := [][]byte{[]byte("zero"), {}, {}, bytes.Repeat([]byte{255, 0}, 40_000)}
	s.submit(spec("after", "w"))
	check := func(s store) {
		t.Helper()
		got := s.job("a")
		if got.PayloadSize != 80_004 || got.Items != nil || len(got.Payload) != 0 || len(got.Tasks) != 4 {
			t.Fatalf("unexpected record %+v", got)
		}
		if listed := s.list(record.ListQuery{})[1]; listed.PayloadSize != 80_004 || listed.Items != nil {
			t.Fatalf("unexpected record in a list %+v", listed)
		}
		for i, body := range s.load(key, key+1, key+2, key+3) {
			if body.Payload == nil || !bytes.Equal(body.Payload, want[i]) || body.Index != i || body.Job.Items != nil {
				t.Fatalf("task %d has %.10q, want %.10q: %+v", i, body.Payload, want[i], body)
			}
			if !bytes.Equal(body.Input(), want[i]) {
				t.Fatalf("the input of task %d is %.10q", i, body.Input())
			}
		}
		if body := s.load(key - 1)[0]; body.Payload != nil || string(body.Input()) != "payload of before" {
			t.Fatalf("a task without an item has one: %+v", body)
		}
	}
	check(s)
	s = s.reopened(h)
	check(s)
	s.must(settlement(key+3, record.Open))
	if again := s.load(key + 3)[0]; again.Token != 1 || !bytes.Equal(again.Payload, want[3]) {
		t.Fatalf("another attempt has %d bytes", len(again.Payload))
	}
	s.must(&record.Cancel{ID: "a", At: epoch})
	s.must(&record.Revive{ID: "a", At: epoch})
	if again := s.load(key)[0]; !bytes.Equal(again.Payload, want[0]) {
		t.Fatalf("a task that was revived has %q", again.Payload)
	}
	s.must(&record.Cancel{ID: "a", At: epoch})
	s.must(&record.Delete{ID: "a"})
	next := s.submit(spec("a", "w", tasks(4)))
	for _, body := range s.load(next, next+3) {
		if body.Payload != nil {
			t.Fatalf("another job has an item of one that was deleted: %+v", body)
		}
	}
}

// testStepOptions keeps what only jobs of steps have.
func testStepOptions(t *testing.T, h Harness) {
	s := open(t, h)
	made := map[string]*record.JobSpec{}
	for i, mod := range []func(*record.JobSpec){
		func(*record.JobSpec) {},
		func(j *record.JobSpec) { j.Retry = someRetry() },
		func(j *record.JobSpec) { j.Breaker = someBreaker() },
		func(j *record.JobSpec) { j.Tasks, j.MaxParallel = 301, 300 },
		func(j *record.JobSpec) {
			j.Tasks, j.MaxParallel, j.Retry, j.Breaker = 3, 2, &jobhost.RetryPolicy{}, someBreaker()
			j.Deadline = epoch + 1
		},
	} {
		id := fmt.Sprint("j", i)
		made[id] = spec(id, "w", mod)
		key := s.submit(spec(id, "w", mod))
		made[id].Key = key
	}
	s = s.reopened(h)
	groups := map[record.Group]bool{}
	for id, want := range made {
		wantSame(t, "specs", s.job(id).JobSpec, *want)
		wantSame(t, "specs of bodies", s.load(want.Key)[0].Job, want)
		for _, c := range s.claim("w", record.Place{ReadyAt: epoch, Key: want.Key - 1}, 1) {
			if c.Group != want.Group() {
				t.Fatalf("task of %s has group %d, want %d", id, c.Group, want.Group())
			}
			groups[c.Group] = true
		}
	}
	if len(groups) != 4 {
		t.Fatalf("groups %v, want none and three", groups)
	}
}
