package hosttest

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

func testDead(s *setup) {
	failing := spec("fail_permanent", "Lost in space")
	failing.ID, failing.Labels = "lost", map[string]string{"team": "blue"}
	s.wantState(s.finish(failing), jobhost.Dead)
	s.wantState(s.finish(spec("trap", "")), jobhost.Dead)
	s.finish(spec("echo", "fine"))

	find := func(filter jobhost.DeadFilter) []jobhost.DeadLetter {
		s.Helper()
		page, err := s.server.Dead(s.ctx, filter)
		s.check(err)
		return page.Letters
	}
	all := find(jobhost.DeadFilter{})
	if len(all) != 2 || all[1].Job != "lost" || all[0].Code != jobhost.FailTrap || all[0].Attempts != 3 {
		s.Fatalf("letters %+v", all)
	}
	lost := all[1]
	if lost.Worker != "test" || lost.Message != "Lost in space" || lost.Code != jobhost.FailWorker || lost.Labels["team"] != "blue" ||
		lost.DiedAt.IsZero() || lost.CreatedAt.IsZero() || lost.Attempts != 1 || lost.Retried || lost.Severity == "" {
		s.Errorf("letter %+v", lost)
	}
	for name, f := range map[string]jobhost.DeadFilter{
		"code": {Code: jobhost.FailWorker}, "category": {Category: lost.Category, Text: "space"}, "label": {Labels: map[string]string{"team": "blue"}},
		"text": {Text: "IN SPACE"}, "time": {After: lost.DiedAt, Before: lost.DiedAt.Add(time.Millisecond), Code: lost.Code}, "worker": {Worker: "test", Text: "lost"},
	} {
		if letters := find(f); len(letters) != 1 || letters[0].Job != "lost" {
			s.Errorf("by %s: %+v", name, letters)
		}
	}
	for name, f := range map[string]jobhost.DeadFilter{
		"worker": {Worker: "other"}, "label": {Labels: map[string]string{"team": "red"}}, "time": {Before: lost.CreatedAt.Add(-time.Hour)},
	} {
		if letters := find(f); len(letters) != 0 {
			s.Errorf("by another %s: %+v", name, letters)
		}
	}
	page, err := s.server.Dead(s.ctx, jobhost.DeadFilter{Limit: 1})
	s.check(err)
	next := find(jobhost.DeadFilter{Limit: 1, Cursor: page.Next})
	if page.Next == "" || len(page.Letters) != 1 || len(next) != 1 || page.Letters[0].Job == next[0].Job {
		s.Errorf("pages %+v and %+v", page, next)
	}
	_, err = s.server.Dead(s.ctx, jobhost.DeadFilter{Category: "bad luck"})
	s.wantCode(err, jobhost.CodeInvalid)
	_, err = s.server.Dead(s.ctx, jobhost.DeadFilter{Cursor: "no'cursor"})
	s.wantCode(err, jobhost.CodeInvalid)

	summary, err := s.server.DeadSummary(s.ctx, jobhost.DeadQuery{})
	s.check(err)
	trend := int64(0)
	for _, t := range summary.Trend {
		trend += t.Deaths
	}
	if summary.Deaths != 2 || trend != 2 || len(summary.Codes) != 2 || len(summary.Workers) != 1 || summary.Workers[0].Deaths != 2 {
		s.Errorf("summary %+v", summary)
	}
}

func testChangeDead(s *setup) {
	var ids []string
	for i := range 5 {
		failing := spec("fail_permanent", fmt.Sprint("number ", i))
		failing.ID = fmt.Sprint("job-", i)
		ids = append(ids, s.finish(failing).ID)
	}
	change := func(c jobhost.DeadChange, matched, changed int) jobhost.DeadChanged {
		s.Helper()
		done, err := s.server.ChangeDead(s.ctx, c)
		s.check(err)
		if done.Matched != matched || done.Changed != changed {
			s.Errorf("%+v: %+v, want %d matched and %d changed", c, done, matched, changed)
		}
		return done
	}
	number := jobhost.DeadFilter{Text: "number 3"}
	change(jobhost.DeadChange{Action: jobhost.DeadRetry, Filter: number, DryRun: true}, 1, 1)
	if job := s.job(ids[3]); job.State != jobhost.Dead || len(job.Failures) != 1 {
		s.Errorf("a dry run changed %+v", job)
	}
	change(jobhost.DeadChange{Action: jobhost.DeadRetry, Filter: number, Rate: 1000}, 1, 1)
	if job := s.wait(ids[3]); len(job.Failures) != 2 {
		s.Errorf("after the retry the job has failures %+v", job.Failures)
	}
	done := change(jobhost.DeadChange{Action: jobhost.DeadDelete, Jobs: []string{ids[0], ids[3], "nobody"}}, 2, 2)
	if len(done.Failed) != 1 || done.Failed[0].Job != "nobody" || done.Failed[0].Error == nil {
		s.Errorf("failed: %+v", done.Failed)
	}
	_, err := s.server.Job(s.ctx, ids[0])
	s.wantCode(err, jobhost.CodeNotFound)

	left := 0
	for filter := (jobhost.DeadFilter{Limit: 2}); left < 10; left++ {
		done, err := s.server.ChangeDead(s.ctx, jobhost.DeadChange{Action: jobhost.DeadDelete, Filter: filter})
		s.check(err)
		if filter.Cursor = done.Next; filter.Cursor == "" {
			break
		}
	}
	page, err := s.server.Dead(s.ctx, jobhost.DeadFilter{})
	s.check(err)
	if len(page.Letters) != 0 {
		s.Errorf("letters are left: %+v", page.Letters)
	}
	_, err = s.server.ChangeDead(s.ctx, jobhost.DeadChange{Action: jobhost.DeadRetry, Rate: -1})
	s.wantCode(err, jobhost.CodeInvalid)
}

// testRetriedLetter looks at a letter whose task runs again.
func testRetriedLetter(s *setup) {
	failing := spec("fail_permanent", "x")
	failing.ID = "again"
	s.finish(failing)
	first, err := s.server.Dead(s.ctx, jobhost.DeadFilter{})
	s.check(err)
	_, err = s.server.RetryTask(s.ctx, "again", 0)
	s.check(err)
	s.wait("again")
	second, err := s.server.Dead(s.ctx, jobhost.DeadFilter{Retried: true})
	s.check(err)
	if len(first.Letters) != 1 || len(second.Letters) != 1 || second.Letters[0].Retried || second.Letters[0].DiedAt.Before(first.Letters[0].DiedAt) {
		s.Errorf("letters %+v, then %+v", first.Letters, second.Letters)
	}
}

func testSingleTasks(s *setup) {
	parts := later()
	parts.ID, parts.Tasks = "parts", 3
	s.submit(parts)
	job, err := s.server.CancelTask(s.ctx, "parts", 1)
	s.check(err)
	if job.State != jobhost.Scheduled || len(job.Tasks) != 3 || job.Tasks[1].State != jobhost.Cancelled || job.Tasks[2].State != jobhost.Scheduled {
		s.Errorf("after the cancel of task 1: %+v", job)
	}
	_, err = s.server.RetryTask(s.ctx, "parts", 2)
	s.wantCode(err, jobhost.CodeConflict)
	for _, task := range []int{-1, 3} {
		_, err = s.server.CancelTask(s.ctx, "parts", task)
		s.wantCode(err, jobhost.CodeNotFound)
		_, err = s.server.RetryTask(s.ctx, "parts", task)
		s.wantCode(err, jobhost.CodeNotFound)
	}
	_, err = s.server.RetryTask(s.ctx, "parts", 1)
	s.check(err)
	for s.job("parts").Tasks[1].State != jobhost.Succeeded {
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Millisecond)
		_, _ = s.server.Wait(ctx, "parts") // the other tasks are open: this passes the time
		cancel()
	}
	s.wantResult("parts", 1, []byte("later"))
	_, err = s.server.CancelTask(s.ctx, "parts", 1)
	s.wantCode(err, jobhost.CodeConflict)
}
