package hosttest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

func testResults(s *setup) {
	tests := []struct {
		name, entry string
		payload     []byte
		want        []byte
	}{
		{"text", "echo", []byte("hello"), []byte("hello")},
		{"bytes", "echo", []byte{0, 255, '\n', '"', 0xc3}, []byte{0, 255, '\n', '"', 0xc3}},
		{"markup", "echo", []byte("</script><script>alert(1)</script>"), []byte("</script><script>alert(1)</script>")},
		{"large", "echo", bytes.Repeat([]byte("x"), 60_000), bytes.Repeat([]byte("x"), 60_000)},
		{"no payload", "echo", nil, nil},
		{"nothing", "empty", []byte("hello"), nil},
	}
	for _, test := range tests {
		s.Log(test.name)
		job := s.finish(jobhost.Spec{Worker: "test", Entry: test.entry, Payload: test.payload})
		s.wantState(job, jobhost.Succeeded)
		s.wantResult(job.ID, 0, test.want)
		if len(job.Tasks) != 1 || job.Tasks[0].ResultSize != len(test.want) || job.Tasks[0].Attempt != 1 {
			s.Errorf("got tasks %+v, want one with %d bytes", job.Tasks, len(test.want))
		}
		if job.EndedAt == nil || job.EndedAt.Before(job.CreatedAt) {
			s.Errorf("job ended at %v, created at %v", job.EndedAt, job.CreatedAt)
		}
	}
	_, err := s.server.Result(s.ctx, s.submit(later()), 0)
	s.wantCode(err, jobhost.CodeConflict)
}

func testTasks(s *setup) {
	many := spec("echo", "x")
	many.Tasks = 5
	job := s.finish(many)
	s.wantState(job, jobhost.Succeeded)
	if job.TaskCount != 5 || len(job.Tasks) != 5 {
		s.Fatalf("got %d tasks, %d told of; want 5", job.TaskCount, len(job.Tasks))
	}
	for i, task := range job.Tasks {
		if task.Index != i || task.State != jobhost.Succeeded {
			s.Errorf("task %d is %+v", i, task)
		}
		s.wantResult(job.ID, i, []byte("x"))
	}
}

func testFailures(s *setup) {
	tests := []struct {
		entry     string
		attempts  int
		retryable bool
		code      string
	}{
		{"fail_retry", 3, true, ""},
		{"fail_permanent", 1, false, ""},
		{"trap", 3, true, jobhost.FailTrap},
	}
	for _, test := range tests {
		s.Log(test.entry)
		job := s.finish(spec(test.entry, "no luck"))
		s.wantState(job, jobhost.Dead)
		if len(job.Failures) != test.attempts {
			s.Errorf("got %d failures, want %d: %+v", len(job.Failures), test.attempts, job.Failures)
			continue
		}
		for i, failure := range job.Failures {
			if failure.Attempt != i+1 || failure.Task != 0 || failure.Retryable != test.retryable || failure.StartedAt.IsZero() {
				s.Errorf("failure %d is %+v", i, failure)
			}
			if test.code != "" && failure.Code != test.code || test.code == "" && !strings.Contains(failure.Message, "no luck") {
				s.Errorf("failure %d is %+v", i, failure)
			}
		}
		_, err := s.server.Result(s.ctx, job.ID, 0)
		s.wantCode(err, jobhost.CodeConflict)
	}
}

func testTimeout(s *setup) {
	endless := spec("spin", "")
	endless.Timeout, endless.MaxAttempts = 50*time.Millisecond, 1
	job := s.finish(endless)
	s.wantState(job, jobhost.Dead)
	if len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailTimeout {
		s.Errorf("got failures %+v, want a timeout", job.Failures)
	}
}

func testSnooze(s *setup) {
	id := s.submit(spec("snooze", "1h"))
	job := s.reach(id, jobhost.Scheduled)
	if job.Tasks[0].Attempt != 0 || time.Until(job.Tasks[0].ReadyAt) < 30*time.Minute {
		s.Errorf("got task %+v, want no attempt and an hour to go", job.Tasks[0])
	}
}

// reach waits until a job has a state. It looks again and again only where
// no event of the Server interface is sure to come.
func (s *setup) reach(id string, state jobhost.State) jobhost.Job {
	s.Helper()
	for {
		job := s.job(id)
		if job.State == state {
			return job
		}
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Millisecond)
		_, err := s.server.Wait(ctx, id)
		cancel()
		if s.ctx.Err() != nil || err == nil && job.State.Ended() {
			s.Fatalf("job %s is %s, want %s", id, job.State, state)
		}
	}
}

func testLogs(s *setup) {
	job := s.finish(spec("log_echo", "said this"))
	s.wantState(job, jobhost.Succeeded)
	logs, err := s.server.Logs(s.ctx, job.ID)
	s.check(err)
	if len(logs) != 1 || logs[0].Attempt != 1 || len(logs[0].Lines) != 1 || !strings.HasSuffix(logs[0].Lines[0], " said this") {
		s.Errorf("got logs %+v, want the line of attempt 1", logs)
	}
	logs, err = s.server.Logs(s.ctx, s.finish(spec("empty", "")).ID)
	s.check(err)
	for _, log := range logs {
		if len(log.Lines) > 0 {
			s.Errorf("a job that is silent has logs: %+v", logs)
		}
	}
}

func testWhy(s *setup) {
	id := s.submit(later())
	why, err := s.server.Why(s.ctx, id)
	s.check(err)
	if why.ID != id || why.State != jobhost.Scheduled || why.Code == "" || why.Reason == "" || why.Until == nil || time.Until(*why.Until) < 30*time.Minute {
		s.Errorf("got %+v, want it to wait for its time", why)
	}
	for entry, state := range map[string]jobhost.State{"empty": jobhost.Succeeded, "fail_permanent": jobhost.Dead} {
		why, err = s.server.Why(s.ctx, s.finish(spec(entry, "")).ID)
		s.check(err)
		if why.State != state || why.Code == "" || why.Reason == "" || why.Until != nil {
			s.Errorf("got %+v, want a reason for %s", why, state)
		}
	}
}

func testNotFound(s *setup) {
	const id = "nobody"
	calls := map[string]func() error{
		"job":    func() error { _, err := s.server.Job(s.ctx, id); return err },
		"result": func() error { _, err := s.server.Result(s.ctx, id, 0); return err },
		"logs":   func() error { _, err := s.server.Logs(s.ctx, id); return err },
		"why":    func() error { _, err := s.server.Why(s.ctx, id); return err },
		"wait":   func() error { _, err := s.server.Wait(s.ctx, id); return err },
		"cancel": func() error { _, err := s.server.Cancel(s.ctx, id); return err },
		"retry":  func() error { _, err := s.server.Retry(s.ctx, id); return err },
		"delete": func() error { return s.server.Delete(s.ctx, id) },
	}
	for name, call := range calls {
		s.Log(name)
		s.wantCode(call(), jobhost.CodeNotFound)
	}
	for _, id := range []string{"", ".", "..", "a/b", "../workers", "a?b", "a#b", "%2e", "a b", "ü", "\x00", "\n"} {
		_, err := s.server.Job(s.ctx, id)
		s.Logf("%q", id)
		s.wantCode(err, jobhost.CodeInvalid)
	}
}

func testWaitEnds(s *setup) {
	id := s.submit(later())
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer context.AfterFunc(s.ctx, func() { cancel(nil) })()
	timer := time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	defer timer.Stop()
	job, err := s.server.Wait(ctx, id)
	if !errors.Is(err, why) {
		s.Errorf("got error %v, want the cause of the context", err)
	}
	if job.ID != id || job.State != jobhost.Scheduled {
		s.Errorf("got job %+v, want it as far as it is", job)
	}
}
