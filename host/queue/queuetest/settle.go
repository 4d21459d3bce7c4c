package queuetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

func testSettle(t *testing.T, h Harness) {
	for _, c := range []struct {
		name   string
		op     record.Settle
		want   record.TaskRecord
		ended  record.Millis
		result string
	}{
		{
			"succeeded",
			record.Settle{Status: record.Succeeded, Attempt: 2, StartedAt: 30, EndedAt: 40, Result: []byte("yes")},
			record.TaskRecord{Status: record.Succeeded, Attempt: 2, ReadyAt: epoch, StartedAt: 30, Token: 1, EndedAt: 40, ResultSize: 3},
			40, "yes",
		},
		{
			"succeeded with nothing",
			record.Settle{Status: record.Succeeded, Attempt: 1, StartedAt: 30, EndedAt: 40},
			record.TaskRecord{Status: record.Succeeded, Attempt: 1, ReadyAt: epoch, StartedAt: 30, Token: 1, EndedAt: 40},
			40, "",
		},
		{
			"dead",
			record.Settle{Status: record.Dead, Attempt: 3, StartedAt: 30, EndedAt: 40},
			record.TaskRecord{Status: record.Dead, Attempt: 3, ReadyAt: epoch, StartedAt: 30, Token: 1, EndedAt: 40},
			40, "-",
		},
		{
			"cancelled",
			record.Settle{Status: record.Cancelled, Attempt: 1, StartedAt: 30, EndedAt: 40},
			record.TaskRecord{Status: record.Cancelled, Attempt: 1, ReadyAt: epoch, StartedAt: 30, Token: 1, EndedAt: 40},
			40, "-",
		},
		{
			"open again",
			record.Settle{Status: record.Open, Attempt: 1, ReadyAt: 99, StartedAt: 30, EndedAt: 40},
			record.TaskRecord{Status: record.Open, Attempt: 1, ReadyAt: 99, StartedAt: 30, Token: 1},
			0, "-",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, h)
			key := s.submit(spec("a", "w"))
			c.op.Key, c.want.Key = key, key
			res := s.must(&c.op)
			if ended := c.op.Status != record.Open; res.JobEnded != ended {
				t.Fatalf("JobEnded is %v", res.JobEnded)
			}
			if res.JobEnded && res.Final[c.op.Status] != 1 {
				t.Fatalf("unexpected final numbers %v", res.Final)
			}
			job := s.job("a")
			wantSame(t, "tasks", job.Tasks, []record.TaskRecord{c.want})
			if job.EndedAt != c.ended {
				t.Fatalf("job ended at %d, want %d", job.EndedAt, c.ended)
			}
			result, err := s.Result(t.Context(), key)
			if c.result == "-" {
				wantCode(t, err, jobhost.CodeNotFound)
			} else if err != nil || string(result) != c.result {
				t.Fatalf("result %q, %v, want %q", result, err, c.result)
			}
			s.checkCounts()
		})
	}
}

func testFencing(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("a", "w"))
	with := func(token int64, status record.Status) *record.Settle {
		op := settlement(key, status)
		op.Token = token
		return op
	}
	wantFenced(t, s.do(with(1, record.Succeeded))[0])
	wantFenced(t, s.do(settlement(key+1000, record.Succeeded))[0])

	s.must(with(0, record.Open))
	wantFenced(t, s.do(with(0, record.Succeeded))[0])
	s.must(with(1, record.Succeeded))
	for _, status := range []record.Status{record.Open, record.Succeeded, record.Dead} {
		wantFenced(t, s.do(with(1, status))[0])
	}

	key = s.submit(spec("b", "w"))
	s.must(&record.Cancel{ID: "b", At: epoch})
	wantFenced(t, s.do(with(0, record.Succeeded))[0])
	wantFenced(t, s.do(with(1, record.Succeeded))[0])
	revived := s.must(&record.Revive{ID: "b", At: epoch}).Tasks[0]
	wantFenced(t, s.do(with(0, record.Succeeded))[0])
	s.must(with(revived.Token, record.Succeeded))

	// A refused settlement leaves nothing behind.
	late := with(0, record.Succeeded)
	late.Log, late.Result, late.Failure = []byte("late\n"), []byte("late"), &jobhost.Failure{Code: "late"}
	wantFenced(t, s.do(late)[0])
	if job := s.job("b"); len(job.Failures) != 0 {
		t.Fatalf("a refused settlement left failures %+v", job.Failures)
	}
	logs, err := s.Logs(t.Context(), key)
	if err != nil || len(logs) != 0 {
		t.Fatalf("a refused settlement left logs %+v, %v", logs, err)
	}
	s.checkCounts()
}

func testRecords(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("a", "w", tasks(2)))
	other := s.submit(spec("b", "w"))
	failure := func(task, attempt int) *jobhost.Failure {
		return &jobhost.Failure{
			Code: "trap", Category: jobhost.CategorySystem, Severity: jobhost.SeverityError,
			Message: "out of bounds\nat \"x\"", Context: `{"a":1}`, Stack: "f0\nf1", Retryable: true,
			Task: task, Attempt: attempt,
			StartedAt: time.UnixMilli(int64(epoch)).UTC(), EndedAt: time.UnixMilli(int64(epoch) + 7).UTC(),
		}
	}
	settle := func(task, attempt int, token int64, status record.Status, log string) {
		op := settlement(key+record.Key(task), status)
		op.Token, op.Number, op.Attempt, op.Log = token, attempt, attempt, []byte(log)
		if status != record.Succeeded {
			op.Failure = failure(task, attempt)
		}
		s.must(op)
	}
	settle(1, 1, 0, record.Open, "one\n")
	settle(0, 1, 0, record.Open, "")
	settle(1, 2, 1, record.Succeeded, "two\nlines\n")
	dropped := settlement(key, record.Dead)
	dropped.Token, dropped.Number, dropped.Attempt = 1, 2, 2
	dropped.LogDropped, dropped.Failure = 12, failure(0, 2)
	s.must(dropped)
	noise := settlement(other, record.Dead)
	noise.Failure, noise.Log = failure(0, 1), []byte("noise\n")
	s.must(noise)

	wantSame(t, "failures", s.job("a").Failures, []jobhost.Failure{*failure(1, 1), *failure(0, 1), *failure(0, 2)})
	logs, err := s.Logs(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "logs", logs, []record.LogRecord{
		{Task: 1, Attempt: 1, Text: []byte("one\n")},
		{Task: 1, Attempt: 2, Text: []byte("two\nlines\n")},
		{Task: 0, Attempt: 2, Dropped: 12},
	})
	if jobs := s.list(record.ListQuery{}); len(jobs[1].Failures) != 0 {
		t.Fatal("a list tells failures")
	}
}

func testManyTasks(t *testing.T, h Harness) {
	s := open(t, h)
	n := jobhost.MaxTasks
	if testing.Short() || raceEnabled {
		n = 1000
	}
	key := s.submit(spec("many", "w", tasks(n)))
	if got := s.claim("w", record.Place{}, n+1); len(got) != n || got[n-1].Key != key+record.Key(n-1) {
		t.Fatalf("claimed %d tasks of %d", len(got), n)
	}
	ended := 0
	var ops []record.Op
	for i := range n {
		ops = append(ops, settlement(key+record.Key(i), []record.Status{record.Succeeded, record.Dead}[i%2]))
	}
	var final record.StatusCounts
	for i, res := range s.do(ops...) {
		if res.Err != nil {
			t.Fatalf("task %d: %v", i, res.Err)
		}
		if res.JobEnded {
			ended++
			final = res.Final
		}
	}
	half := int64(n / 2)
	if want := (record.StatusCounts{record.Succeeded: half, record.Dead: half}); ended != 1 || final != want {
		t.Fatalf("the job ended %d times with %v, want once with %v", ended, final, want)
	}
	if revived := s.must(&record.Revive{ID: "many", At: epoch + 9}); len(revived.Tasks) != n/2 {
		t.Fatalf("revived %d tasks, want %d", len(revived.Tasks), n/2)
	}
	cancelled := s.must(&record.Cancel{ID: "many", At: epoch + 10})
	want := record.StatusCounts{record.Succeeded: half, record.Cancelled: half}
	if !cancelled.JobEnded || cancelled.Final != want || len(cancelled.Tasks) != n/2 {
		t.Fatalf("cancelled %d tasks, final %v", len(cancelled.Tasks), cancelled.Final)
	}
	if got := s.job("many"); len(got.Tasks) != n || got.EndedAt != epoch+20 {
		t.Fatalf("%d tasks, ended at %d", len(got.Tasks), got.EndedAt)
	}
	wantSame(t, "counts", s.counts(), map[string]record.StatusCounts{"w": want})
	s.must(&record.Delete{ID: "many"})
	s.submit(spec("next", "w"))
	if got := fmt.Sprint(ids(s.list(record.ListQuery{Worker: "w"}))); got != "[next]" {
		t.Fatalf("after the delete the list is %s", got)
	}
	s.checkCounts()
}
