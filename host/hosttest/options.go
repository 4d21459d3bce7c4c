package hosttest

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// testDeadline wants a task that waits too long to be dead, and one that
// doesn't to be none the worse for its deadline.
func testDeadline(s *setup) {
	s.operate("pause")
	late := spec("echo", "x")
	late.Deadline, late.Tasks = 30*time.Millisecond, 2
	job := s.finish(late)
	s.wantState(job, jobhost.Dead)
	if len(job.Failures) != 2 || job.Failures[0].Code != jobhost.FailDeadline || job.Failures[0].Retryable {
		s.Errorf("got failures %+v, want two for the deadline", job.Failures)
	}
	s.operate("resume")
	_, err := s.server.Retry(s.ctx, job.ID)
	s.check(err)
	s.wantState(s.wait(job.ID), jobhost.Succeeded) // a retry is without the deadline
	in := spec("echo", "x")
	in.Deadline = time.Hour
	s.wantState(s.finish(in), jobhost.Succeeded)
}

// testUnique submits jobs with one key many times at once: they must become one.
func testUnique(s *setup) {
	const submits = 100
	one := later()
	one.UniqueKey, one.UniqueFor = "only", time.Hour
	var group sync.WaitGroup
	receipts, errs := make([]jobhost.Receipt, submits), make([]error, submits)
	for i := range submits {
		group.Go(func() {
			mine := one
			mine.Payload = fmt.Append(nil, i) // whatever else they say
			receipts[i], errs[i] = s.server.Submit(s.ctx, mine)
		})
	}
	group.Wait()
	fresh := 0
	for i := range submits {
		s.check(errs[i])
		if !receipts[i].Deduplicated {
			fresh++
		}
		if receipts[i].ID != receipts[0].ID {
			s.Fatalf("got job %s beside %s", receipts[i].ID, receipts[0].ID)
		}
	}
	if page, err := s.server.Jobs(s.ctx, jobhost.Filter{}); err != nil || fresh != 1 || len(page.Jobs) != 1 {
		s.Errorf("%d submits made a job, and there are %d (%v); want one", fresh, len(page.Jobs), err)
	}
	short := spec("echo", "x")
	short.UniqueKey, short.UniqueFor = "short", time.Millisecond
	first := s.finish(short)
	group.Add(1) // before: the timer may be faster than the next line
	time.AfterFunc(2*time.Millisecond, group.Done)
	group.Wait()
	if second := s.submit(short); second == first.ID {
		s.Errorf("job %s keeps others out after its time", first.ID)
	}
	bad := spec("echo", "x")
	bad.UniqueFor = time.Hour
	_, err := s.server.Submit(s.ctx, bad)
	s.wantCode(err, jobhost.CodeInvalid)
}

// testLabels wants jobs to be found by their labels, beside whatever else is asked for.
func testLabels(s *setup) {
	var ids []string
	for i, labels := range []map[string]string{
		{"a": "1"}, {"a": "1", "größe": "=x "}, {"a": "2"}, nil, {"a": "1", "b": ""},
	} {
		job := later()
		if i == 4 {
			job = spec("echo", "x")
		}
		job.ID, job.Labels = fmt.Sprint("job-", i), labels
		ids = append(ids, s.submit(job))
	}
	s.wait(ids[4])
	tests := []struct {
		name   string
		filter jobhost.Filter
		want   []string
	}{
		{"one", jobhost.Filter{Labels: map[string]string{"a": "1"}}, []string{"job-4", "job-1", "job-0"}},
		{"two", jobhost.Filter{Labels: map[string]string{"a": "1", "größe": "=x "}}, []string{"job-1"}},
		{"empty", jobhost.Filter{Labels: map[string]string{"b": ""}}, []string{"job-4"}},
		{"none", jobhost.Filter{Labels: map[string]string{"c": ""}}, nil},
		{"scheduled", jobhost.Filter{Labels: map[string]string{"a": "1"}, State: jobhost.Scheduled}, []string{"job-1", "job-0"}},
		{"succeeded", jobhost.Filter{Labels: map[string]string{"a": "1"}, State: jobhost.Succeeded}, []string{"job-4"}},
		{"limit", jobhost.Filter{Labels: map[string]string{"a": "1"}, Limit: 2}, []string{"job-4", "job-1"}},
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

// testCallback wants each end of a job to be told to the worker that it names; no
// URL is allowed, and no job may name the host's own workers.
func testCallback(s *setup) {
	job := spec("echo", "hello")
	job.ID, job.Callback, job.Labels = "told", jobhost.Callback{Worker: "test"}, map[string]string{"k": "v"}
	s.finish(job)
	ended := s.toldOf("told", 2)
	if ended.State != jobhost.Succeeded || ended.Labels["k"] != "v" || ended.Result != "hello" || ended.Tasks["succeeded"] != 1 {
		s.Errorf("the callback was told %+v", ended)
	}
	cancelled := later()
	cancelled.ID, cancelled.Callback = "cancelled", jobhost.Callback{Worker: "test"}
	_, err := s.server.Cancel(s.ctx, s.submit(cancelled))
	s.check(err)
	if ended := s.toldOf("cancelled", 4); ended.State != jobhost.Cancelled {
		s.Errorf("the callback was told %+v", ended)
	}
	for _, test := range []struct {
		callback jobhost.Callback
		want     jobhost.Code
	}{
		{jobhost.Callback{Worker: "nobody"}, jobhost.CodeNotFound},
		{jobhost.Callback{Worker: jobhost.WebhookWorker}, jobhost.CodeDenied},
		{jobhost.Callback{URL: "https://example.com/hook"}, jobhost.CodeDenied}, // unless the host is told otherwise
		{jobhost.Callback{URL: "file:///etc/passwd"}, jobhost.CodeInvalid},
		{jobhost.Callback{URL: "https://me@example.com/"}, jobhost.CodeInvalid},
		{jobhost.Callback{Worker: "test", URL: "https://example.com/hook"}, jobhost.CodeInvalid},
	} {
		job.ID, job.Callback = "", test.callback
		_, err = s.server.Submit(s.ctx, job)
		s.wantCode(err, test.want)
	}
	own := spec("echo", "hello")
	own.Worker = jobhost.WebhookWorker
	_, err = s.server.Submit(s.ctx, own)
	s.wantCode(err, jobhost.CodeDenied)
}

// toldOf returns what the newest of so many jobs, the callback of another one,
// was given; its worker must return its payload when no entry is named.
func (s *setup) toldOf(id string, jobs int) (ended jobhost.Ended) {
	s.Helper()
	page, err := s.server.Jobs(s.ctx, jobhost.Filter{})
	s.check(err)
	if len(page.Jobs) != jobs {
		s.Fatalf("there are %d jobs, want %d", len(page.Jobs), jobs)
	}
	told := s.wait(page.Jobs[0].ID)
	if told.State != jobhost.Succeeded || told.PayloadSize == 0 {
		s.Fatalf("the callback is %+v", told)
	}
	result, err := s.server.Result(s.ctx, told.ID, 0)
	s.check(err)
	if err := json.Unmarshal(result.Data, &ended); err != nil || ended.Job != id {
		s.Fatalf("the callback was told %q (%v), want the end of %s", result.Data, err, id)
	}
	return ended
}
