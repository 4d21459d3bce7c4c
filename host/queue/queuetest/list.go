package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

func testList(t *testing.T, h Harness) {
	s := open(t, h)
	a := s.submit(full("a", "w"))
	b := s.submit(spec("b", "w"))
	c := s.submit(spec("c", "x"))
	d := s.submit(spec("d", "x", tasks(3)))
	s.succeed(b)
	s.must(settlement(c, record.Dead))
	s.succeed(d)
	s.must(settlement(d+1, record.Cancelled))

	status := func(s record.Status) *record.Status { return &s }
	for _, tt := range []struct {
		name string
		q    record.ListQuery
		want []string
	}{
		{"all", record.ListQuery{}, []string{"d", "c", "b", "a"}},
		{"limit", record.ListQuery{Limit: 3}, []string{"d", "c", "b"}},
		{"below", record.ListQuery{Below: c}, []string{"b", "a"}},
		{"worker", record.ListQuery{Worker: "w"}, []string{"b", "a"}},
		{"unknown worker", record.ListQuery{Worker: "y"}, nil},
		{"open", record.ListQuery{Status: status(record.Open)}, []string{"d", "a"}},
		{"succeeded", record.ListQuery{Status: status(record.Succeeded)}, []string{"d", "b"}},
		{"dead", record.ListQuery{Status: status(record.Dead)}, []string{"c"}},
		{"cancelled", record.ListQuery{Status: status(record.Cancelled)}, []string{"d"}},
		{"worker and status", record.ListQuery{Worker: "x", Status: status(record.Open)}, []string{"d"}},
		{"worker and status, none", record.ListQuery{Worker: "w", Status: status(record.Dead)}, nil},
		{"keys", record.ListQuery{Keys: []record.Key{d, d - 1_000_000, a}}, []string{"d", "a"}},
		{"keys of tasks", record.ListQuery{Keys: []record.Key{d + 1}}, nil},
		{"no keys", record.ListQuery{Keys: []record.Key{}}, nil},
		{"keys below", record.ListQuery{Keys: []record.Key{d, c, a}, Below: d}, []string{"c", "a"}},
		{"keys, limit", record.ListQuery{Keys: []record.Key{d, c, a}, Limit: 2}, []string{"d", "c"}},
		{"keys, worker", record.ListQuery{Keys: []record.Key{d, c, a}, Worker: "w"}, []string{"a"}},
		{"keys, status", record.ListQuery{Keys: []record.Key{d, c, b, a}, Status: status(record.Succeeded)}, []string{"d", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) { // one after the other: they share the store
			wantSame(t, "jobs", ids(s.list(tt.q)), tt.want)
		})
	}
	want := full("a", "w")
	want.Key, want.Payload = a, nil
	got := s.list(record.ListQuery{Below: b})[0]
	wantSame(t, "jobs", got, record.JobRecord{JobSpec: *want, PayloadSize: 4, Tasks: s.job("a").Tasks})
}

// A job is found by a label and by the status of any of its tasks, also where
// the jobs in between have only one of both.
func testListLabels(t *testing.T, h Harness) {
	s := open(t, h)
	label := func(value string) func(*record.JobSpec) {
		return func(s *record.JobSpec) { s.Labels = map[string]string{"team": value} }
	}
	a := s.submit(spec("a", "w", tasks(3), label("blue")))
	b := s.submit(spec("b", "w", tasks(3), label("red")))
	s.submit(spec("c", "w", label("blue")))
	s.submit(spec("d", "w"))
	s.succeed(a + 2)
	s.succeed(b + 1)
	succeeded := record.Succeeded
	for _, tt := range []struct {
		name string
		q    record.ListQuery
		want []string
	}{
		{"label", record.ListQuery{Labels: map[string]string{"team": "blue"}}, []string{"c", "a"}},
		{"label and status", record.ListQuery{Labels: map[string]string{"team": "blue"}, Status: &succeeded}, []string{"a"}},
		{"unknown value", record.ListQuery{Labels: map[string]string{"team": "green"}}, nil},
	} {
		for limit := range 3 {
			tt.q.Limit = limit
			want := tt.want
			if limit > 0 {
				want = want[:min(limit, len(want))]
			}
			wantSame(t, fmt.Sprint(tt.name, ", limit ", limit), ids(s.list(tt.q)), want)
		}
	}
}

func testListPages(t *testing.T, h Harness) {
	s := open(t, h)
	var ops []record.Op
	for i := range 70 {
		worker := []string{"a", "a", "b", "c"}[i%4]
		ops = append(ops, &record.Submit{Job: spec(fmt.Sprintf("%03d", i), worker, tasks(1+i%7*(i%2)))})
	}
	var settles []record.Op
	for i, res := range s.do(ops...) {
		if i%3 != 0 {
			settles = append(settles, settlement(res.Key, record.Status(i%4)))
		}
	}
	s.do(settles...)
	all := s.list(record.ListQuery{})
	if len(all) != 70 || all[0].ID != "069" || all[69].ID != "000" {
		t.Fatalf("listed %d jobs of 70", len(all))
	}
	for _, worker := range []string{"", "a", "b"} {
		for status := -1; status <= int(record.Cancelled); status++ {
			q := record.ListQuery{Worker: worker}
			if status >= 0 {
				st := record.Status(status)
				q.Status = &st
			}
			var want []string
			for i := range all {
				if matches(&all[i], &q) {
					want = append(want, all[i].ID)
				}
			}
			for _, limit := range []int{1, 7, 1000} {
				wantSame(t, fmt.Sprintf("jobs of %q in status %d, pages of %d", worker, status, limit), s.pages(q, limit), want)
			}
		}
	}
}

// matches is the meaning of a query without its keys, place and limit.
func matches(job *record.JobRecord, q *record.ListQuery) bool {
	if q.Parent != "" && (job.Parent == nil || job.Parent.ID != q.Parent) {
		return false
	}
	if q.Worker != "" && q.Worker != job.Worker || q.After != 0 && job.CreatedAt < q.After ||
		q.Before != 0 && job.CreatedAt >= q.Before {
		return false
	}
	for name, value := range q.Labels {
		if got, ok := job.Labels[name]; !ok || got != value {
			return false
		}
	}
	return q.Status == nil || slices.ContainsFunc(job.Tasks, func(t record.TaskRecord) bool { return t.Status == *q.Status })
}

// pages reads a whole list in pages.
func (s store) pages(q record.ListQuery, limit int) []string {
	s.t.Helper()
	q.Limit = limit
	var all []string
	for {
		page := s.list(q)
		all = append(all, ids(page)...)
		if len(page) < limit {
			return all
		}
		q.Below = page[len(page)-1].Key
	}
}

func testListByTime(t *testing.T, h Harness) {
	s := open(t, h)
	// The clock is set back once, some jobs are large so that keys rise fast,
	// and times repeat.
	var ops []record.Op
	for i := range 60 {
		at := epoch + record.Millis(i/2*100)
		if i >= 40 {
			at -= 2000
		}
		ops = append(ops, &record.Submit{Job: spec(fmt.Sprintf("%02d", i), []string{"a", "b"}[i%2], createdAt(at), tasks(1+i%12/11*500))})
	}
	s.do(ops...)
	all := s.list(record.ListQuery{})
	for _, worker := range []string{"", "b"} {
		for _, r := range [][2]record.Millis{
			{0, epoch},
			{epoch, 0},
			{0, epoch + 1},
			{epoch + 500, epoch + 600},
			{epoch + 501, epoch + 700},
			{epoch + 1900, 0},
			{epoch + 9000, 0},
			{0, epoch - 100},
			{epoch, epoch + 9000},
			{epoch + 600, epoch + 600},
		} {
			q := record.ListQuery{Worker: worker, After: r[0], Before: r[1]}
			var want []string
			for i := range all {
				if matches(&all[i], &q) {
					want = append(want, all[i].ID)
				}
			}
			for _, limit := range []int{1, 5, 100} {
				wantSame(t, fmt.Sprintf("jobs of %q in %v, pages of %d", worker, r, limit), s.pages(q, limit), want)
			}
		}
	}
}

func testMissing(t *testing.T, h Harness) {
	s := open(t, h)
	_, err := s.Job(t.Context(), "none")
	wantCode(t, err, jobhost.CodeNotFound)
	_, err = s.Result(t.Context(), 1)
	wantCode(t, err, jobhost.CodeNotFound)
	key := s.submit(spec("a", "w"))
	_, err = s.Result(t.Context(), key)
	wantCode(t, err, jobhost.CodeNotFound)
	if logs, err := s.Logs(t.Context(), 12345); err != nil || len(logs) != 0 {
		t.Fatalf("logs of no job: %v, %v", logs, err)
	}
}

func testContext(t *testing.T, h Harness) {
	s := open(t, h)
	cause := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := s.Claim(ctx, "w", record.Place{}, 1); !errors.Is(err, cause) {
		t.Fatalf("claim with an ended context: %v", err)
	}
	// The store is as good as before.
	s.submit(spec("a", "w"))
	for range 10 {
		if got := s.claim("w", record.Place{}, 1); len(got) != 1 {
			t.Fatalf("claimed %d tasks of 1", len(got))
		}
	}
}

func testClosed(t *testing.T, h Harness) {
	s := open(t, h)
	acked := make(chan error, 50)
	for i := range cap(acked) {
		s.Commit([]record.Op{&record.Submit{Job: spec(fmt.Sprint(i), "w")}}, func(_ []record.OpResult, err error) { acked <- err })
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	for range cap(acked) {
		if err := <-acked; err != nil {
			t.Fatalf("a commit before Close failed: %v", err)
		}
	}
	_, err := commit(s.Store, &record.Cancel{ID: "1"})
	wantCode(t, err, jobhost.CodeUnavailable)
	_, err = s.Job(t.Context(), "1")
	wantCode(t, err, jobhost.CodeUnavailable)
}
