package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// over reports whether nothing keeps the job at a time any longer.
func (j *modelJob) over(at record.Millis) bool {
	return !slices.ContainsFunc(j.tasks, func(t modelTask) bool {
		return t.Status == record.Open || t.expires == 0 || t.expires > at
	})
}

// tidy removes what is over.
func (m *model) tidy(op *record.Tidy) (res record.OpResult) {
	defer func() { res.Gone = m.anyGone() }()
	for _, job := range m.jobs {
		if !job.over(op.At) {
			continue
		}
		if res.Removed >= int64(op.Limit) {
			res.Next = op.At
			return res
		}
		res.Removed += int64(len(job.tasks))
		m.remove(job)
	}
	for _, job := range m.jobs {
		for i := range job.tasks {
			if at := job.tasks[i].expires; at > op.At && (res.Next == 0 || at < res.Next) {
				res.Next = at
			}
		}
	}
	return res
}

// evict removes the oldest dead jobs of a worker, but not the one given.
func (m *model) evict(except *modelJob, most int) (res record.OpResult) {
	var dead []*modelJob
	n := 0
	for _, job := range m.jobs {
		if d := job.counts()[record.Dead]; d > 0 && job.spec.Worker == except.spec.Worker {
			dead = append(dead, job)
			n += int(d)
		}
	}
	slices.SortFunc(dead, func(a, b *modelJob) int { return cmp.Compare(a.spec.Key, b.spec.Key) })
	for _, job := range dead {
		if c := job.counts(); n > most && job != except && c[record.Open] == 0 {
			n -= int(c[record.Dead])
			res.Evicted = append(res.Evicted, job.spec.ID)
			res.Removed += int64(len(job.tasks))
			m.remove(job)
		}
	}
	return res
}

func testTidy(t *testing.T, h Harness) {
	s := open(t, h)
	end := func(id string, status record.Status, expires record.Millis) {
		op := settlement(s.submit(spec(id, "w")), status)
		op.ExpiresAt, op.Log = expires, []byte("line\n")
		s.must(op)
	}
	end("soon", record.Succeeded, epoch+100)
	end("late", record.Dead, epoch+300)
	end("never", record.Succeeded, 0)
	s.submit(spec("open", "w"))
	s.submit(spec("cancelled", "x", tasks(2)))
	s.must(&record.Cancel{ID: "cancelled", At: epoch, ExpiresAt: epoch + 200})
	parts := s.submit(spec("parts", "x", tasks(2)))
	for i, expires := range []record.Millis{epoch + 100, epoch + 250} {
		op := settlement(parts+record.Key(i), record.Succeeded)
		op.ExpiresAt = expires
		s.must(op)
	}
	for _, step := range []struct {
		at      record.Millis
		removed int64
		left    []string
	}{
		{epoch + 99, 0, []string{"parts", "cancelled", "open", "never", "late", "soon"}},
		{epoch + 100, 1, []string{"parts", "cancelled", "open", "never", "late"}},
		{epoch + 200, 2, []string{"parts", "open", "never", "late"}},
		{epoch + 250, 2, []string{"open", "never", "late"}},
		{epoch + 1000, 1, []string{"open", "never"}},
	} {
		if removed := s.tidy(&record.Tidy{At: step.at, Limit: 100}); removed != step.removed {
			t.Fatalf("at %d: %d tasks were removed, want %d", step.at, removed, step.removed)
		}
		wantSame(t, fmt.Sprint("jobs at ", step.at), ids(s.list(record.ListQuery{})), step.left)
		s.checkCounts()
	}
	_, err := s.Job(t.Context(), "soon")
	wantCode(t, err, jobhost.CodeNotFound)

	// What runs again is not over, whenever it ended before.
	end("again", record.Dead, epoch+100)
	s.must(&record.Revive{ID: "again", At: epoch + 50})
	if removed := s.tidy(&record.Tidy{At: epoch + 1000, Limit: 100}); removed != 0 {
		t.Fatalf("%d tasks were removed that run again", removed)
	}
}

// testTidyAtOnce lets a job begin and end in the same batch as a look at what is
// over: that must not cost the job its own.
func testTidyAtOnce(t *testing.T, h Harness) {
	s := open(t, h)
	const many = 2000 // so that a store that keeps books by ranges of keys begins another one
	next := s.submit(spec("before", "w", tasks(many))) + many
	op := settlement(next, record.Succeeded)
	op.ExpiresAt = epoch + 100
	results := s.do(&record.Submit{Job: spec("a", "w")}, op, &record.Tidy{At: epoch + 50, Limit: 100})
	if results[0].Key != next || results[1].Err != nil {
		t.Fatalf("got %+v", results)
	}
	if removed := s.tidy(&record.Tidy{At: epoch + 100, Limit: 100}); removed != 1 {
		t.Errorf("%d tasks were removed", removed)
	}
}

// tidy tidies until there is nothing left to do, and returns how many tasks
// were removed.
func (s store) tidy(op *record.Tidy) (removed int64) {
	s.t.Helper()
	for {
		res := s.must(op)
		if removed += res.Removed; res.Removed > int64(op.Limit) {
			s.t.Fatalf("%d tasks were removed at once", res.Removed)
		}
		if res.Next == 0 || res.Next > op.At {
			return removed
		}
	}
}

// testTidyInPieces removes many jobs, a few at a time, among some that stay.
func testTidyInPieces(t *testing.T, h Harness) {
	s := open(t, h)
	const n, limit = 1200, 100
	var submits, settles []record.Op
	for i := range n {
		submits = append(submits, &record.Submit{Job: spec(fmt.Sprintf("%04d", i), "w")})
	}
	var left []string
	for i, res := range s.do(submits...) {
		op := settlement(res.Key, record.Succeeded)
		if op.ExpiresAt = epoch + 100; i%10 == 0 {
			op.ExpiresAt = epoch + 1000
			left = append(left, fmt.Sprintf("%04d", i))
		}
		settles = append(settles, op)
	}
	s.do(settles...)
	op := &record.Tidy{At: epoch + 500, Limit: limit, Lag: time.Second}
	removed := s.tidy(op)
	if res := s.must(op); res.Next == 0 || res.Next > op.At+1000 {
		t.Errorf("goes on at %d", res.Next)
	}
	slices.Reverse(left)
	if removed != n-n/10 {
		t.Errorf("%d tasks were removed", removed)
	}
	wantSame(t, "jobs", ids(s.list(record.ListQuery{})), left)
	s.checkCounts()
}

func testEvict(t *testing.T, h Harness) {
	s := open(t, h)
	die := func(id string, most int) []string {
		op := settlement(s.submit(spec(id, "w")), record.Dead)
		op.MaxDead = most
		return s.must(op).Evicted
	}
	half := s.submit(spec("half", "w", tasks(2)))
	s.must(settlement(half, record.Dead))
	for _, id := range []string{"a", "b"} {
		wantSame(t, "evicted", die(id, 3), []string{})
	}
	wantSame(t, "evicted", die("c", 3), []string{"a"}) // half is still open
	s.must(settlement(half+1, record.Succeeded))
	wantSame(t, "evicted", die("d", 2), []string{"half", "b"})
	wantSame(t, "jobs", ids(s.list(record.ListQuery{})), []string{"d", "c"})

	many := s.submit(spec("many", "w", tasks(4)))
	for i := range 4 {
		op := settlement(many+record.Key(i), record.Dead)
		op.MaxDead = 3
		s.must(op)
	}
	if job := s.job("many"); len(job.Tasks) != 4 {
		t.Errorf("a job evicted itself: %+v", job)
	}
	s.checkCounts()
}
