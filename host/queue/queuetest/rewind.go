package queuetest

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// testRewind takes back what was written while the clock was ahead, from epoch+1000 on and
// up to epoch+9000, and nothing else.
func testRewind(t *testing.T, h Harness) {
	s := open(t, h)
	ahead := func(at, ready record.Millis) func(*record.JobSpec) {
		return func(j *record.JobSpec) { j.CreatedAt, j.ReadyAt = at, ready }
	}
	want := map[string]record.Millis{"before": 0, "later": 20_000, "due": 1_000, "delayed": 2_000, "given up": 1_000}
	s.submit(spec("before", "w", ahead(epoch, epoch)))
	s.submit(spec("later", "w", ahead(epoch, epoch+20_000))) // as it was meant
	s.submit(spec("due", "w", ahead(epoch, epoch+8_000)))    // it was, before
	s.submit(spec("delayed", "w", ahead(epoch+7_000, epoch+10_000)))
	s.submit(spec("given up", "w", ahead(epoch+7_000, epoch+7_000), func(j *record.JobSpec) { j.Deadline = epoch + 11_000 }))
	for id, at := range map[string]record.Millis{"old": 500, "new": 8_500} {
		op := settlement(s.submit(spec(id, "x")), record.Succeeded)
		op.EndedAt, op.ExpiresAt = epoch+at, epoch+at+9_000
		s.must(op)
	}
	for key, at := range map[string]record.Millis{"old": 500, "new": 8_500} {
		s.must(&record.ChangeKV{Worker: "w", Changes: []record.KVChange{{Key: key, Value: []byte("v"), Expires: epoch + at + 9_000}}, At: epoch + at})
	}
	s.submit(spec("only", "x", ahead(epoch+8_500, epoch+8_500), func(j *record.JobSpec) { j.UniqueKey, j.UniqueUntil = "k", epoch+17_500 }))
	s.must(&record.Rewind{From: epoch + 9_000, To: epoch + 1_000, Until: epoch + 10_000})

	for _, c := range s.claim("w", record.Place{}, 99) {
		bodies, err := s.Load(t.Context(), []record.Key{c.Key})
		if err != nil || len(bodies) != 1 {
			t.Fatal(bodies, err)
		}
		id := bodies[0].Job.ID
		if at := c.ReadyAt - epoch; at != want[id] {
			t.Errorf("%s is ready at %d, want %d", id, at, want[id])
		}
		if id == "given up" && c.Deadline != epoch+3_000 {
			t.Errorf("it is given up at %d", c.Deadline-epoch)
		}
	}
	if e, err := s.KV(t.Context(), "w", "new", epoch+9_499); err != nil || e.Expires != epoch+9_500 {
		t.Errorf("a key that was set then expires at %d, %v", e.Expires-epoch, err)
	}
	if e, err := s.KV(t.Context(), "w", "old", epoch+9_499); err != nil || e.Expires != epoch+9_500 {
		t.Errorf("a key that was set before expires at %d, %v", e.Expires-epoch, err)
	}
	same := func(j *record.JobSpec) { j.UniqueKey, j.CreatedAt = "k", epoch+9_499 }
	if res := s.must(&record.Submit{Job: spec("again", "x", same)}); !res.Existing {
		t.Error("the unique key doesn't hold any more")
	}
	if removed := s.tidy(&record.Tidy{At: epoch + 9_499, Limit: 100}); removed != 0 {
		t.Errorf("%d tasks were removed too early", removed)
	}
	if removed := s.tidy(&record.Tidy{At: epoch + 9_500, Limit: 100}); removed != 2 {
		t.Errorf("%d tasks were removed, want 2", removed)
	}
	same = func(j *record.JobSpec) { j.UniqueKey, j.CreatedAt = "k", epoch+9_500 }
	if res := s.must(&record.Submit{Job: spec("anew", "x", same)}); res.Existing {
		t.Error("the unique key holds still")
	}
	if at, err := s.Newest(t.Context()); err != nil || at != epoch+9_500 {
		t.Errorf("the newest job is of %d, %v", at-epoch, err)
	}
	if _, err := s.KV(t.Context(), "w", "new", epoch+9_500); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a key that has expired: %v", err)
	}
}
