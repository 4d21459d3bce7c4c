package hosttest

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

func testCancelScheduled(s *setup) {
	id := s.submit(later())
	for range 2 { // once more is fine
		job, err := s.server.Cancel(s.ctx, id)
		s.check(err)
		s.wantState(job, jobhost.Cancelled)
	}
	s.wantState(s.wait(id), jobhost.Cancelled)
	_, err := s.server.Cancel(s.ctx, s.finish(spec("echo", "")).ID)
	s.wantCode(err, jobhost.CodeConflict)
}

func testCancelRunning(s *setup) {
	endless := spec("spin", "")
	endless.Timeout = 20 * time.Second
	id := s.submit(endless)
	s.reach(id, jobhost.Running)
	_, err := s.server.Cancel(s.ctx, id)
	s.check(err)
	s.wantState(s.wait(id), jobhost.Cancelled)
}

func testRetry(s *setup) {
	job := s.finish(spec("fail_permanent", "x"))
	s.wantState(job, jobhost.Dead)
	job, err := s.server.Retry(s.ctx, job.ID)
	s.check(err)
	if job.TaskCount != 1 {
		s.Errorf("retry returned %+v", job)
	}
	s.wantState(s.wait(job.ID), jobhost.Dead)

	id := s.submit(later())
	_, err = s.server.Retry(s.ctx, id)
	s.wantCode(err, jobhost.CodeConflict)
	_, err = s.server.Cancel(s.ctx, id)
	s.check(err)
	_, err = s.server.Retry(s.ctx, id)
	s.check(err)
	s.wantState(s.wait(id), jobhost.Succeeded)
	_, err = s.server.Retry(s.ctx, id)
	s.wantCode(err, jobhost.CodeConflict)
}

func testDelete(s *setup) {
	id := s.submit(later())
	s.wantCode(s.server.Delete(s.ctx, id), jobhost.CodeConflict)
	_, err := s.server.Cancel(s.ctx, id)
	s.check(err)
	s.check(s.server.Delete(s.ctx, id))
	_, err = s.server.Job(s.ctx, id)
	s.wantCode(err, jobhost.CodeNotFound)
	s.wantCode(s.server.Delete(s.ctx, id), jobhost.CodeNotFound)
}

func testListPages(s *setup) {
	const jobs, size = 25, 10
	for i := range jobs {
		job := later()
		job.ID = fmt.Sprintf("job-%02d", i)
		s.submit(job)
	}
	var got []string
	filter := jobhost.Filter{Limit: size}
	for {
		page, err := s.server.Jobs(s.ctx, filter)
		s.check(err)
		if len(page.Jobs) > size {
			s.Fatalf("a page has %d jobs, want %d at most", len(page.Jobs), size)
		}
		for _, job := range page.Jobs {
			if job.TaskCount != 1 || job.Tasks != nil {
				s.Errorf("lists tell how many tasks there are, not which: %+v", job)
			}
			got = append(got, job.ID)
		}
		if page.Next == "" || len(got) > jobs {
			break
		}
		filter.Cursor = page.Next
	}
	if len(got) != jobs {
		s.Fatalf("the pages have %d jobs, want %d: %v", len(got), jobs, got)
	}
	for i, id := range got {
		if want := fmt.Sprintf("job-%02d", jobs-1-i); id != want {
			s.Errorf("job %d is %s, want %s: newest first", i, id, want)
		}
	}
	_, err := s.server.Jobs(s.ctx, jobhost.Filter{Cursor: "no'cursor"})
	s.wantCode(err, jobhost.CodeInvalid)
}

func testListFilters(s *setup) {
	scheduled, dead, done := s.submit(later()), s.finish(spec("fail_permanent", "x")).ID, s.finish(spec("echo", "x"))
	tests := []struct {
		name   string
		filter jobhost.Filter
		want   []string
	}{
		{"all", jobhost.Filter{}, []string{done.ID, dead, scheduled}},
		{"limit", jobhost.Filter{Limit: 1}, []string{done.ID}},
		{"worker", jobhost.Filter{Worker: "test"}, []string{done.ID, dead, scheduled}},
		{"other worker", jobhost.Filter{Worker: "other"}, nil},
		{"scheduled", jobhost.Filter{State: jobhost.Scheduled}, []string{scheduled}},
		{"dead", jobhost.Filter{State: jobhost.Dead}, []string{dead}},
		{"succeeded", jobhost.Filter{State: jobhost.Succeeded}, []string{done.ID}},
		{"running", jobhost.Filter{State: jobhost.Running}, nil},
		{"after", jobhost.Filter{After: done.CreatedAt.Add(time.Hour)}, nil},
		{"before", jobhost.Filter{Before: done.CreatedAt.Add(-time.Hour)}, nil},
		{"between", jobhost.Filter{After: done.CreatedAt.Add(-time.Hour), Before: done.CreatedAt.Add(time.Hour)}, []string{done.ID, dead, scheduled}},
	}
	for _, test := range tests {
		page, err := s.server.Jobs(s.ctx, test.filter)
		s.check(err)
		var got []string
		for _, job := range page.Jobs {
			got = append(got, job.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			s.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func testWorkers(s *setup) {
	s.finish(spec("echo", "x"))
	s.submit(later())
	workers, err := s.server.Workers(s.ctx)
	s.check(err)
	if len(workers) != 1 || workers[0].Name != "test" || workers[0].Slots < 1 || workers[0].QueueCapacity < 1 {
		s.Fatalf("got workers %+v, want test", workers)
	}
	if n := workers[0].Tasks; n["succeeded"] != 1 || n["scheduled"] != 1 {
		s.Errorf("got numbers %v, want one succeeded and one scheduled", n)
	}
}
