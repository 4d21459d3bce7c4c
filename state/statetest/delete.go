package statetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// testMark marks a job: it can't be used any more, but it is still listed.
func testMark(s store) {
	job := state.Job{ID: "job", Run: "1"}
	src, other := s.follow(job, 1), s.follow(state.Job{ID: "job"}, 1)
	src.set(of(job, 0, "a", 1))
	other.set(of(job, 0, "a", 1))
	before := s.infos()[job.Key()]
	if !before.DeletedAt.IsZero() {
		s.t.Fatalf("before it is marked it is %+v", before)
	}
	for range 2 { // again is fine
		if err := s.Mark(s.t.Context(), job); err != nil {
			s.t.Fatal(err)
		}
		src.wantEnd(state.ErrDeleted)
	}
	_, err := src.write(of(job, 0, "a", 2))
	wantErr(s.t, "set after it was marked", err, state.ErrDeleted)
	for _, tasks := range []int{0, 1} {
		_, err := s.tryFollow(job, tasks)
		wantCode(s.t, "open after it was marked", err, jobhost.CodeConflict)
	}
	after := s.infos()[job.Key()]
	if after.DeletedAt.IsZero() || !after.ChangedAt.Equal(before.ChangedAt) || after.States != 1 || after.Tasks != 1 {
		s.t.Fatalf("marked it is %+v, before it was %+v", after, before)
	}
	other.set(of(job, 0, "a", 2)) // another run
	src.close()
	if err := s.Delete(s.t.Context(), job); err != nil {
		s.t.Fatalf("delete what is marked: %v", err)
	}
	if got := s.follow(job, 2); got.Tasks() != 2 || got.count() != 0 {
		s.t.Fatalf("after it was deleted there are %d tasks and %d states", got.Tasks(), got.count())
	}
}

// testDelete removes a job, after which everything about it begins anew.
func testDelete(s store) {
	src, second := s.follow(plain, 2), s.follow(plain, 2)
	for range 3 {
		src.set(withEvent(of(plain, 0, "a", 1), fmt.Sprint("e", src.version(0, "a"))))
	}
	src.set(of(plain, 1, "b", 1))
	second.wantVersion(1, "b", 1)
	if err := s.Delete(s.t.Context(), plain); err != nil {
		s.t.Fatal(err)
	}
	src.wantEnd(state.ErrDeleted)
	second.wantEnd(state.ErrDeleted)
	_, err := s.tryFollow(plain, 0)
	wantCode(s.t, "open after it was deleted", err, jobhost.CodeNotFound)
	if len(s.infos()) != 0 {
		s.t.Errorf("there are still jobs: %v", s.infos())
	}

	anew := s.follow(plain, 5)
	if anew.Tasks() != 5 || anew.count() != 0 {
		s.t.Fatalf("it has %d tasks and %d states from before", anew.Tasks(), anew.count())
	}
	if got := anew.set(withEvent(of(plain, 0, "a", 7), "e2")); got.Version != 1 || got.Status != 7 {
		s.t.Fatalf("the first write is %+v", got)
	}
	told := len(src.news())
	_, err = src.write(of(plain, 0, "a", 8))
	wantErr(s.t, "set of the former life", err, state.ErrDeleted)
	anew.set(of(plain, 0, "a", 9))
	anew.wantVersion(0, "a", 2)
	src.close()
	second.close()
	if anew.set(of(plain, 0, "a", 10)).Version != 3 || anew.reason() != nil {
		s.t.Fatalf("closing sources of the former life ended the new one: %v", anew.reason())
	}
	if len(src.news()) != told {
		s.t.Error("the feed of the former life was told of the new one")
	}
}

// testDeleteAll removes the states of a job in all its runs, except for those of the host.
func testDeleteAll(s store) {
	var stay []string
	for i, key := range []string{"a", "a~1", "a~2", "a~3", "a~4", "a~5", "a~_fiber", "a~_x", "a~zz", "a-1", "a.1", "a0~1", "aa", "A~1", "b"} {
		job := state.ParseKey(key)
		s.follow(job, 1).set(of(job, 0, "tag", 1))
		if i >= 9 || job.OfHost() {
			stay = append(stay, key)
		}
	}
	slices.Sort(stay)
	for range 2 { // again is fine
		if err := state.DeleteAll(s.t.Context(), s.Store, "a"); err != nil {
			s.t.Fatal(err)
		}
		if got := s.keys(100, func(state.Job) {}); !slices.Equal(got, stay) {
			s.t.Fatalf("there are states of %v, want %v", got, stay)
		}
	}
}

// testLook opens a job that reports nothing: that leaves nothing behind, and it can be
// deleted and marked while it is open.
func testLook(s store) {
	s.follow(plain, 3).close()
	if got := s.infos(); len(got) != 0 {
		s.t.Fatalf("a look has made %v", got)
	}
	_, err := s.tryFollow(plain, 0)
	wantCode(s.t, "open what was only looked at", err, jobhost.CodeNotFound)
	src := s.follow(plain, 3)
	if err := s.Delete(s.t.Context(), plain); err != nil {
		s.t.Fatalf("delete what is open: %v", err)
	}
	src.wantEnd(state.ErrDeleted)
	_, err = src.write(of(plain, 0, "a", 1))
	wantErr(s.t, "set after it was deleted", err, state.ErrDeleted)
	if got := s.infos(); len(got) != 0 {
		s.t.Fatalf("the deletion has made %v", got)
	}
	src = s.follow(plain, 3)
	if err := s.Mark(s.t.Context(), plain); err != nil {
		s.t.Fatalf("mark what is open: %v", err)
	}
	src.wantEnd(state.ErrDeleted)
	_, err = s.tryFollow(plain, 3)
	wantCode(s.t, "open what is marked", err, jobhost.CodeConflict)
}

// testMissing asks for jobs that aren't there.
func testMissing(s store) {
	s.follow(plain, 1).set(of(plain, 0, "a", 1))
	for _, job := range []state.Job{{ID: "other"}, {ID: plain.ID, Run: "1"}, {ID: "JOB-1"}} {
		wantCode(s.t, "mark", s.Mark(s.t.Context(), job), jobhost.CodeNotFound)
		wantCode(s.t, "delete", s.Delete(s.t.Context(), job), jobhost.CodeNotFound)
		_, err := s.tryFollow(job, 0)
		wantCode(s.t, "open", err, jobhost.CodeNotFound)
	}
	if len(s.infos()) != 1 {
		s.t.Errorf("asking made jobs: %v", s.infos())
	}
}

// testJobs lists what the store knows of jobs.
func testJobs(s store) {
	if len(s.infos()) != 0 {
		s.t.Fatalf("an empty store has jobs: %v", s.infos())
	}
	job := state.Job{ID: "job", Run: "7"}
	src := s.follow(job, 4)
	first := src.set(of(job, 0, "a", 1))
	src.set(of(job, 0, "a", 2))
	src.set(of(job, 1, "a", 1))
	last := src.set(of(job, 1, "b", 1))
	info, ok := s.infos()[job.Key()]
	if !ok || info.Job != job || info.Tasks != 4 || info.States != 3 || !info.DeletedAt.IsZero() {
		s.t.Fatalf("it is listed as %+v", info)
	}
	wantTimes(s.t, &info, first, last)
	last = src.set(withEvent(of(job, 1, "b", 2), "e1"))
	info = s.infos()[job.Key()]
	wantTimes(s.t, &info, first, last)
	if info.States != 3 {
		s.t.Errorf("a change is no new state: %+v", info)
	}
}

// wantTimes compares when a job was made and changed with its first and last writes.
func wantTimes(t testing.TB, info *state.Info, first, last state.State) {
	t.Helper()
	switch {
	case info.CreatedAt.IsZero() || info.CreatedAt.After(first.Timestamp):
		t.Errorf("created at %v, the first write is of %v", info.CreatedAt, first.Timestamp)
	case info.ChangedAt.Before(last.Timestamp) || info.ChangedAt.After(last.Timestamp.Add(time.Minute)):
		t.Errorf("changed at %v, the last write is of %v", info.ChangedAt, last.Timestamp)
	}
}

// testJobPages lists jobs by the bytes of their keys, also while some are deleted.
func testJobPages(s store) {
	var want []string
	for _, id := range []string{"a", "A", "Z", "a-1", "a.1", "a_1", "a1", "aa", "ab", "b", "0", "9", "10", strings.Repeat("z", jobhost.MaxIDBytes)} {
		for _, job := range []state.Job{{ID: id}, {ID: id, Run: "r"}} {
			s.follow(job, 1).set(of(job, 0, "tag", 1))
			want = append(want, job.Key())
		}
	}
	slices.Sort(want)
	for _, limit := range []int{1, 7, len(want), 1000} {
		if got := s.keys(limit, func(state.Job) {}); !slices.Equal(got, want) {
			s.t.Fatalf("pages of %d: got %v, want %v", limit, got, want)
		}
	}
	if got := s.keys(3, func(job state.Job) {
		if err := s.Delete(s.t.Context(), job); err != nil {
			s.t.Fatal(err)
		}
	}); !slices.Equal(got, want) {
		s.t.Fatalf("while they are deleted: got %v, want %v", got, want)
	}
	if got := s.keys(10, func(state.Job) {}); len(got) != 0 {
		s.t.Fatalf("left: %v", got)
	}
}

// keys lists all jobs in pages, calling visit with each after its page was read.
func (s store) keys(limit int, visit func(state.Job)) []string {
	s.t.Helper()
	var keys []string
	for after := ""; ; {
		page, err := s.Jobs(s.t.Context(), after, limit)
		if err != nil || len(page) > limit {
			s.t.Fatalf("a page of %d has %d jobs, %v", limit, len(page), err)
		}
		for _, info := range page {
			keys = append(keys, info.Key())
			visit(info.Job)
		}
		if len(page) < limit {
			return keys
		}
		after = keys[len(keys)-1]
	}
}

// testClosed closes the store, after which nothing works and everyone knows.
func testClosed(s store) {
	src, second := s.follow(plain, 1), s.follow(state.Job{ID: "other"}, 1)
	src.set(of(plain, 0, "a", 1))
	for range 2 { // again is fine
		if err := s.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, f := range []source{src, second} {
		wantErr(s.t, "end of the feed", f.reason(), state.ErrClosed)
		f.close()
	}
	_, err := src.write(of(plain, 0, "a", 2))
	wantErr(s.t, "set", err, state.ErrClosed)
	_, err = s.tryFollow(plain, 1)
	wantErr(s.t, "open", err, state.ErrClosed)
	_, err = s.Jobs(s.t.Context(), "", 10)
	wantErr(s.t, "jobs", err, state.ErrClosed)
	wantErr(s.t, "mark", s.Mark(s.t.Context(), plain), state.ErrClosed)
	wantErr(s.t, "delete", s.Delete(s.t.Context(), plain), state.ErrClosed)
}

// testReopen finds everything again that was acknowledged.
func testReopen(s store) {
	if s.h.Reopen == nil {
		s.t.Skip("the store leaves nothing behind")
	}
	marked, gone := state.Job{ID: "job-1", Run: "marked"}, state.Job{ID: "gone"}
	src := s.follow(plain, 3)
	for i := range 10 {
		st := of(plain, i%3, fmt.Sprint("tag-", i%2), int32(i))
		st.Message, st.Payload, st.EventID = "🟢 line\nline", []byte(`{"i":`+fmt.Sprint(i)+`}`), fmt.Sprint("e", i)
		src.set(st)
	}
	for _, job := range []state.Job{marked, gone} {
		s.follow(job, 1).set(of(job, 0, "a", 1))
	}
	if err := s.Mark(s.t.Context(), marked); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Delete(s.t.Context(), gone); err != nil {
		s.t.Fatal(err)
	}
	before := s.infos()

	s.Store = s.h.Reopen(s.t, s.Store)
	wantErr(s.t, "end of the feed", src.reason(), state.ErrClosed)
	again := s.follow(plain, 9)
	if again.Tasks() != 3 || again.count() != src.count() {
		s.t.Fatalf("it has %d tasks and %d states, before 3 and %d", again.Tasks(), again.count(), src.count())
	}
	for k, st := range src.all() {
		wantState(s.t, "opened again", again.get(k.task, k.tag), st)
	}
	for key, info := range s.infos() {
		was := before[key]
		if info.Tasks != was.Tasks || info.States != was.States || !info.CreatedAt.Equal(was.CreatedAt) ||
			!info.ChangedAt.Equal(was.ChangedAt) || !info.DeletedAt.Equal(was.DeletedAt) {
			s.t.Errorf("%s is %+v, before it was %+v", key, info, was)
		}
	}
	if len(before) != 2 || len(s.infos()) != 2 {
		s.t.Errorf("there were %d jobs and are %d", len(before), len(s.infos()))
	}
	_, err := s.tryFollow(marked, 1)
	wantCode(s.t, "open what is marked", err, jobhost.CodeConflict)
	last := src.get(0, "tag-1")
	wantState(s.t, "sent again", again.set(withEvent(of(plain, 0, "tag-1", 99), last.EventID)), last)
	if next := again.set(of(plain, 0, "tag-1", 100)); next.Version != last.Version+1 || next.EventID == last.EventID {
		s.t.Errorf("after %+v comes %+v", last, next)
	}
}
