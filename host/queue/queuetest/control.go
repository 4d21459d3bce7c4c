package queuetest

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

func testCancel(t *testing.T, h Harness) {
	s := open(t, h)
	wantCode(t, s.do(&record.Cancel{ID: "a"})[0].Err, jobhost.CodeNotFound)

	key := s.submit(spec("a", "w", tasks(3), func(s *record.JobSpec) { s.Priority = jobhost.High }))
	s.succeed(key + 1)
	retry := settlement(key+2, record.Open)
	s.must(retry)
	res := s.must(&record.Cancel{ID: "a", At: epoch + 50})
	wantSame(t, "results", res, record.OpResult{
		Key: key, Worker: "w", JobEnded: true, Final: record.StatusCounts{record.Succeeded: 1, record.Cancelled: 2},
		Tasks: []record.Changed{
			{Key: key, Index: 0, Level: 1, ReadyAt: epoch},
			{Key: key + 2, Index: 2, Level: 1, Attempt: 1, ReadyAt: epoch + 1000, Token: 1},
		},
	})
	if job := s.job("a"); job.EndedAt != epoch+50 || job.Tasks[0].EndedAt != epoch+50 {
		t.Fatalf("unexpected record %+v", job)
	}
	// Again is fine, and changes nothing.
	if again := s.must(&record.Cancel{ID: "a", At: epoch + 60}); len(again.Tasks) != 0 || again.JobEnded {
		t.Fatalf("cancelling again: %+v", again)
	}
	if job := s.job("a"); job.EndedAt != epoch+50 {
		t.Fatalf("cancelling again moved the end to %d", job.EndedAt)
	}
	s.succeed(s.submit(spec("b", "w")))
	wantCode(t, s.do(&record.Cancel{ID: "b", At: epoch})[0].Err, jobhost.CodeConflict)
	if got := s.claim("w", record.Place{}, 10); len(got) != 0 {
		t.Fatalf("cancelled tasks are claimed: %+v", got)
	}
	s.checkCounts()
}

func testRevive(t *testing.T, h Harness) {
	s := open(t, h)
	wantCode(t, s.do(&record.Revive{ID: "a"})[0].Err, jobhost.CodeNotFound)
	key := s.submit(spec("a", "w", tasks(4)))
	wantCode(t, s.do(&record.Revive{ID: "a"})[0].Err, jobhost.CodeConflict)
	s.succeed(key)
	dead := settlement(key+1, record.Dead)
	dead.Failure = &jobhost.Failure{Code: "trap", Task: 1, Attempt: 1}
	s.must(dead)
	s.must(&record.Cancel{ID: "a", At: epoch + 50})

	res := s.must(&record.Revive{ID: "a", At: epoch + 70})
	wantSame(t, "results", res, record.OpResult{Key: key, Worker: "w", Tasks: []record.Changed{
		{Key: key + 1, Index: 1, Level: 2, ReadyAt: epoch + 70, Token: res.Tasks[0].Token},
		{Key: key + 2, Index: 2, Level: 2, ReadyAt: epoch + 70, Token: res.Tasks[1].Token},
		{Key: key + 3, Index: 3, Level: 2, ReadyAt: epoch + 70, Token: res.Tasks[2].Token},
	}})
	job := s.job("a")
	if job.EndedAt != 0 || job.Tasks[1].Attempt != 0 || job.Tasks[1].EndedAt != 0 || len(job.Failures) != 1 {
		t.Fatalf("unexpected record %+v", job)
	}
	ended := 0
	for _, c := range s.claim("w", record.Place{}, 10) {
		op := settlement(c.Key, record.Succeeded)
		op.Token = c.Token
		if s.must(op).JobEnded {
			ended++
		}
	}
	if ended != 1 {
		t.Fatalf("the job ended %d times", ended)
	}
	wantCode(t, s.do(&record.Revive{ID: "a"})[0].Err, jobhost.CodeConflict)
	s.checkCounts()
}

func testDelete(t *testing.T, h Harness) {
	s := open(t, h)
	wantCode(t, s.do(&record.Delete{ID: "a"})[0].Err, jobhost.CodeNotFound)
	key := s.submit(spec("a", "w", tasks(2)))
	keep := s.submit(spec("keep", "w"))
	op := settlement(key, record.Succeeded)
	op.Result, op.Log = []byte("result"), []byte("log\n")
	s.must(op)
	wantCode(t, s.do(&record.Delete{ID: "a"})[0].Err, jobhost.CodeConflict)
	dead := settlement(key+1, record.Dead)
	dead.Failure = &jobhost.Failure{Code: "trap"}
	s.must(dead)
	s.must(&record.Delete{ID: "a"})

	_, err := s.Job(t.Context(), "a")
	wantCode(t, err, jobhost.CodeNotFound)
	_, err = s.Result(t.Context(), key)
	wantCode(t, err, jobhost.CodeNotFound)
	if logs, err := s.Logs(t.Context(), key); err != nil || len(logs) != 0 {
		t.Fatalf("logs of a deleted job: %+v, %v", logs, err)
	}
	wantFenced(t, s.do(settlement(key, record.Succeeded))[0])
	if again := s.must(&record.Submit{Job: spec("a", "w")}); again.Existing || again.Key <= keep {
		t.Fatalf("submit after delete: %+v", again)
	}
	s.succeed(keep)
	s.checkCounts()
}
