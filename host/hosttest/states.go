package hosttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// put sets a state, of a job with three tasks.
func (s *setup) put(job string, task int, tag string, status int32) jobhost.TaskState {
	s.Helper()
	set, err := s.server.SetState(s.ctx, "", jobhost.TaskState{JobID: job, TaskID: task, Tag: tag, Status: status}, 3)
	s.check(err)
	return set
}

func (s *setup) states(query jobhost.StateQuery) jobhost.StateReport {
	s.Helper()
	report, err := s.server.States(s.ctx, query)
	s.check(err)
	return report
}

// wantStates checks which states there are, and which one prevails.
func (s *setup) wantStates(query jobhost.StateQuery, prevailing string, want ...string) {
	s.Helper()
	report := s.states(query)
	var got []string
	for i := range report.States {
		got = append(got, brief(&report.States[i]))
	}
	if brief(&report.State) != prevailing || strings.Join(got, " ") != strings.Join(want, " ") {
		s.Errorf("got %s of %v, want %s of %v", brief(&report.State), got, prevailing, want)
	}
	if report.Job != query.Job || report.Run != query.Run {
		s.Errorf("asked for %+v the answer is of %q %q", query, report.Job, report.Run)
	}
}

func brief(s *jobhost.TaskState) string { return fmt.Sprintf("%d/%s=%d", s.TaskID, s.Tag, s.Status) }

func testStates(s *setup) {
	began := time.Now().Add(-time.Minute)
	full := jobhost.TaskState{
		JobID: "outside", TaskID: 1, Tag: "ingest", Status: 7, Message: "half <of> it\n\"done\" 🟢", EventID: "e1",
		Payload: json.RawMessage(`{"rows":5000,"note":"ä"}`), SchemaVersion: 2,
	}
	first, err := s.server.SetState(s.ctx, "", full, 3)
	s.check(err)
	if first.Version != 1 || first.Timestamp.Before(began) || first.EventID != "e1" {
		s.Errorf("got %+v", first)
	}
	want := full
	want.Version, want.Timestamp = 1, first.Timestamp
	s.wantSame(first, want)
	s.wantSame(s.states(jobhost.StateQuery{Job: "outside"}).States[0], want)

	other := full
	other.Status = 9
	again, err := s.server.SetState(s.ctx, "", other, 0) // sent again with the same EventID
	s.check(err)
	s.wantSame(again, want)
	other.EventID = ""
	next, err := s.server.SetState(s.ctx, "", other, 9) // the job has three tasks already
	s.check(err)
	if next.Version != 2 || next.Status != 9 || next.EventID == "" || next.EventID == "e1" || s.states(jobhost.StateQuery{Job: "outside"}).Tasks != 3 {
		s.Errorf("got %+v", next)
	}

	s.put("outside", 0, "ingest", jobhost.StatusFinished)
	s.put("outside", 0, "export", jobhost.StatusStarted)
	plain := jobhost.StateQuery{Job: "outside"}
	s.wantStates(plain, "2/=0", "0/export=1", "0/ingest=2147483647", "1/ingest=9")
	ingest, one := plain, 0
	ingest.Tag = "ingest"
	s.wantStates(ingest, "2/ingest=0", "0/ingest=2147483647", "1/ingest=9")
	ofOne := plain
	ofOne.Task = &one
	s.wantStates(ofOne, "0/export=1", "0/export=1", "0/ingest=2147483647")
	ofOne.Tag = "ingest"
	s.wantStates(ofOne, "0/ingest=2147483647", "0/ingest=2147483647")
	ofOne.Tag = "nothing"
	s.wantStates(ofOne, "0/nothing=0")
	s.put("outside", 1, "export", jobhost.StatusError)
	s.put("outside", 2, "export", jobhost.StatusWarning)
	s.wantStates(plain, "2/export=-2", "0/export=1", "0/ingest=2147483647", "1/export=-1", "1/ingest=9", "2/export=-2")
}

// wantSame compares states but for how their payloads are written.
func (s *setup) wantSame(got, want jobhost.TaskState) {
	s.Helper()
	var payloads [2]any
	for i, st := range []*jobhost.TaskState{&got, &want} {
		s.check(json.Unmarshal(st.Payload, &payloads[i]))
		st.Payload = nil
	}
	if !got.Timestamp.Equal(want.Timestamp) {
		s.Errorf("got time %v, want %v", got.Timestamp, want.Timestamp)
	}
	got.Timestamp, want.Timestamp = time.Time{}, time.Time{}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || fmt.Sprint(payloads[0]) != fmt.Sprint(payloads[1]) {
		s.Errorf("got %+v with %v\nwant %+v with %v", got, payloads[0], want, payloads[1])
	}
}

func testStatesRefused(s *setup) {
	s.put("three", 0, "a", 1)
	good := jobhost.TaskState{JobID: "three", Tag: "a", Status: 2}
	tests := []struct {
		name   string
		change func(*jobhost.TaskState)
		run    string
		tasks  int
		want   jobhost.Code
	}{
		{"job", func(st *jobhost.TaskState) { st.JobID = "a/b" }, "", 3, jobhost.CodeInvalid},
		{"no job", func(st *jobhost.TaskState) { st.JobID = "" }, "", 3, jobhost.CodeInvalid},
		{"run", func(*jobhost.TaskState) {}, "a b", 3, jobhost.CodeInvalid},
		{"task", func(st *jobhost.TaskState) { st.TaskID = 3 }, "", 4, jobhost.CodeInvalid},
		{"task below 0", func(st *jobhost.TaskState) { st.TaskID = -1 }, "", 3, jobhost.CodeInvalid},
		{"no tag", func(st *jobhost.TaskState) { st.Tag = "" }, "", 3, jobhost.CodeInvalid},
		{"tag", func(st *jobhost.TaskState) { st.Tag = "a b" }, "", 3, jobhost.CodeInvalid},
		{"long tag", func(st *jobhost.TaskState) { st.Tag = strings.Repeat("t", jobhost.MaxTagBytes+1) }, "", 3, jobhost.CodeInvalid},
		{"the host's tag", func(st *jobhost.TaskState) { st.Tag = jobhost.TagRun }, "", 3, jobhost.CodeDenied},
		{"another of the host's tags", func(st *jobhost.TaskState) { st.Tag = "_mine" }, "", 3, jobhost.CodeDenied},
		{"message", func(st *jobhost.TaskState) { st.Message = strings.Repeat("m", jobhost.MaxStateMessageBytes+1) }, "", 3, jobhost.CodeInvalid},
		{"event id", func(st *jobhost.TaskState) { st.EventID = "a\nb" }, "", 3, jobhost.CodeInvalid},
		{"schema version", func(st *jobhost.TaskState) { st.SchemaVersion = -1 }, "", 3, jobhost.CodeInvalid},
		{"a payload that is no object", func(st *jobhost.TaskState) { st.Payload = json.RawMessage(`[1]`) }, "", 3, jobhost.CodeInvalid},
		{"a payload that is no JSON", func(st *jobhost.TaskState) { st.Payload = json.RawMessage(`{"a":}`) }, "", 3, jobhost.CodeInvalid},
		{"a payload that is no UTF-8", func(st *jobhost.TaskState) { st.Payload = json.RawMessage("{\"a\":\"\xff\"}") }, "", 3, jobhost.CodeInvalid},
		{"a deep payload", func(st *jobhost.TaskState) {
			st.Payload = json.RawMessage(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`)
		}, "", 3, jobhost.CodeInvalid},
		{"a large payload", func(st *jobhost.TaskState) {
			st.Payload = json.RawMessage(`{"a":"` + strings.Repeat("x", jobhost.MaxStatePayloadBytes) + `"}`)
		}, "", 3, jobhost.CodeTooLarge},
		{"tasks below 0", func(*jobhost.TaskState) {}, "", -1, jobhost.CodeInvalid},
		{"too many tasks", func(st *jobhost.TaskState) { st.JobID = "many" }, "", jobhost.MaxTasks + 1, jobhost.CodeInvalid},
		{"unknown job", func(st *jobhost.TaskState) { st.JobID = "nobody" }, "", 0, jobhost.CodeNotFound},
		{"unknown run", func(*jobhost.TaskState) {}, "again", 0, jobhost.CodeNotFound},
	}
	for _, test := range tests {
		st := good
		test.change(&st)
		s.Logf("set: %s", test.name)
		_, err := s.server.SetState(s.ctx, test.run, st, test.tasks)
		s.wantCode(err, test.want)
	}
	below, above := -1, 3
	for _, test := range []struct {
		query jobhost.StateQuery
		want  jobhost.Code
	}{
		{jobhost.StateQuery{Job: "nobody"}, jobhost.CodeNotFound},
		{jobhost.StateQuery{Job: "three", Run: "again"}, jobhost.CodeNotFound},
		{jobhost.StateQuery{Job: "a/b"}, jobhost.CodeInvalid},
		{jobhost.StateQuery{}, jobhost.CodeInvalid},
		{jobhost.StateQuery{Job: "three", Run: "../x"}, jobhost.CodeInvalid},
		{jobhost.StateQuery{Job: "three", Tag: "a b"}, jobhost.CodeInvalid},
		{jobhost.StateQuery{Job: "three", Task: &above}, jobhost.CodeInvalid},
		{jobhost.StateQuery{Job: "three", Task: &below}, jobhost.CodeInvalid},
	} {
		s.Logf("ask: %+v", test.query)
		_, err := s.server.States(s.ctx, test.query)
		s.wantCode(err, test.want)
		w := s.watchStates(test.query)
		s.wantCode(w.end(), test.want)
	}
	s.wantStates(jobhost.StateQuery{Job: "three"}, "1/=0", "0/a=1")
}

// testStatesOfJob wants the host to tell how the tasks of its own jobs go, and
// takes states of them.
func testStatesOfJob(s *setup) {
	good := spec("echo", "x")
	good.ID, good.Tasks = "good", 2
	s.finish(good)
	query := jobhost.StateQuery{Job: "good"}
	s.wantStates(query, "0/_run=2147483647", "0/_run=2147483647", "1/_run=2147483647")
	for _, st := range s.states(query).States {
		if st.Version < 2 || st.Timestamp.IsZero() || !strings.Contains(st.Message, "Finished") {
			s.Errorf("got %+v", st)
		}
	}
	s.put("good", 1, "rows", 5)
	s.wantStates(query, "1/rows=5", "0/_run=2147483647", "1/_run=2147483647", "1/rows=5")
	_, err := s.server.SetState(s.ctx, "", jobhost.TaskState{JobID: "good", TaskID: 2, Tag: "rows"}, 3)
	s.wantCode(err, jobhost.CodeInvalid) // the queue knows better how many tasks there are

	bad := spec("fail_permanent", "no luck")
	bad.ID = "bad"
	s.finish(bad)
	query.Job = "bad"
	s.wantStates(query, "0/_run=-1", "0/_run=-1")
	if st := s.states(query).State; !strings.Contains(st.Message, "no luck") {
		s.Errorf("got %+v, want why it is dead", st)
	}
	waiting := later()
	waiting.ID = "waiting"
	s.submit(waiting)
	query.Job = "waiting"
	s.wantStates(query, "0/=0")
}

// testStatesGo wants states to go with their job, and with them those who watch, and
// another job of the same id to begin anew.
func testStatesGo(s *setup) {
	for _, own := range []bool{true, false} {
		job := spec("fail_permanent", "no luck")
		job.ID = fmt.Sprintf("job-%t", own)
		for _, again := range []bool{false, true} {
			s.finish(job)
			query := jobhost.StateQuery{Job: job.ID}
			want := []string{"0/_run=-1"}
			if own {
				set, err := s.server.SetState(s.ctx, "", jobhost.TaskState{JobID: job.ID, Tag: "a", Status: 7}, 0)
				s.check(err)
				if set.Version != 1 {
					s.Errorf("the first state is %+v", set)
				}
				_, err = s.server.SetState(s.ctx, "again", jobhost.TaskState{JobID: job.ID, Tag: "a", Status: 7}, 1)
				s.check(err)
				want = append(want, "0/a=7")
			}
			s.wantStates(query, "0/_run=-1", want...)
			w := s.watchStates(query)
			w.want("replay 0/_run=-1")
			s.check(s.server.Delete(s.ctx, job.ID))
			s.wantCode(w.end(), jobhost.CodeNotFound)
			for _, run := range []string{"", "again"} {
				_, err := s.server.States(s.ctx, jobhost.StateQuery{Job: job.ID, Run: run})
				s.Logf("again: %t, own: %t, run: %q", again, own, run)
				s.wantCode(err, jobhost.CodeNotFound)
			}
		}
	}
}

func testStateJobs(s *setup) {
	const jobs, size = 25, 10
	for i := range jobs {
		s.put(fmt.Sprintf("job-%02d", i), i%3, "a", 1)
	}
	s.put("job-00", 2, "b", 1)
	var seen []string
	for filter := (jobhost.StateJobFilter{Limit: size}); ; {
		page, err := s.server.StateJobs(s.ctx, filter)
		s.check(err)
		if len(page.Jobs) > size {
			s.Errorf("a page has %d jobs", len(page.Jobs))
		}
		for _, j := range page.Jobs {
			if want := fmt.Sprintf("job-%02d", len(seen)); j.Job != want || j.Run != "" || j.Tasks != 3 || j.DeletedAt != nil ||
				j.CreatedAt.IsZero() || j.ChangedAt.Before(j.CreatedAt) || (j.States == 2) != (j.Job == "job-00") {
				s.Fatalf("got %+v, want %s", j, want)
			}
			seen = append(seen, j.Job)
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	all, err := s.server.StateJobs(s.ctx, jobhost.StateJobFilter{Deleted: true})
	s.check(err)
	if len(seen) != jobs || len(all.Jobs) != jobs || all.Next != "" {
		s.Errorf("the pages have %v, and all are %+v", seen, all)
	}
	for _, filter := range []jobhost.StateJobFilter{{Limit: -1}, {Limit: jobhost.MaxPage + 1}, {Cursor: "a\nb"}} {
		_, err := s.server.StateJobs(s.ctx, filter)
		s.wantCode(err, jobhost.CodeInvalid)
	}
}

// testStateRuns wants the runs of a job to be kept apart.
func testStateRuns(s *setup) {
	for i, run := range []string{"", "monday", "tuesday"} {
		set, err := s.server.SetState(s.ctx, run, jobhost.TaskState{JobID: "j", Tag: "a", Status: int32(i + 1)}, i+1)
		s.check(err)
		if set.Version != 1 || set.JobID != "j" {
			s.Errorf("got %+v", set)
		}
	}
	s.wantStates(jobhost.StateQuery{Job: "j"}, "0/a=1", "0/a=1")
	s.wantStates(jobhost.StateQuery{Job: "j", Run: "monday"}, "1/=0", "0/a=2")
	page, err := s.server.StateJobs(s.ctx, jobhost.StateJobFilter{})
	s.check(err)
	if len(page.Jobs) != 3 || page.Jobs[1].Run != "monday" || page.Jobs[1].Tasks != 2 {
		s.Errorf("got %+v", page)
	}
	s.check(s.server.DeleteStates(s.ctx, "j", "monday"))
	_, err = s.server.States(s.ctx, jobhost.StateQuery{Job: "j", Run: "monday"})
	s.wantCode(err, jobhost.CodeNotFound)
	s.wantStates(jobhost.StateQuery{Job: "j", Run: "tuesday"}, "1/=0", "0/a=3")
}

func testDeleteStates(s *setup) {
	s.put("j", 0, "a", 1)
	w := s.watchStates(jobhost.StateQuery{Job: "j"})
	w.want("replay 0/a=1", "sentinel")
	s.check(s.server.DeleteStates(s.ctx, "j", ""))
	s.wantCode(w.end(), jobhost.CodeNotFound)
	_, err := s.server.States(s.ctx, jobhost.StateQuery{Job: "j"})
	s.wantCode(err, jobhost.CodeNotFound)
	s.wantCode(s.server.DeleteStates(s.ctx, "j", ""), jobhost.CodeNotFound)
	if again := s.put("j", 0, "a", 1); again.Version != 1 {
		s.Errorf("got %+v, want another life of the job", again)
	}
	id := s.submit(later())
	s.put(id, 0, "a", 1)
	s.wantCode(s.server.DeleteStates(s.ctx, id, ""), jobhost.CodeConflict)
	s.wantCode(s.server.DeleteStates(s.ctx, "a/b", ""), jobhost.CodeInvalid)
	s.wantCode(s.server.DeleteStates(s.ctx, "j", "a/b"), jobhost.CodeInvalid)
	s.wantStates(jobhost.StateQuery{Job: id}, "0/a=1", "0/a=1")
}

// testCleanStates wants what is young to stay. How old ones go is for the tests
// of those who have a clock.
func testCleanStates(s *setup) {
	s.put("j", 0, "a", 1)
	const day = jobhost.Duration(24 * time.Hour)
	for _, dry := range []bool{true, false} {
		done, err := s.server.CleanStates(s.ctx, jobhost.StateCleanup{TombstoneAge: 30 * day, DeleteAge: 90 * day, DryRun: dry})
		s.check(err)
		if done != (jobhost.StateCleaned{DryRun: dry}) {
			s.Errorf("got %+v, want nothing done", done)
		}
	}
	for _, c := range []jobhost.StateCleanup{
		{}, {TombstoneAge: day}, {DeleteAge: day}, {TombstoneAge: day, DeleteAge: day}, {TombstoneAge: 2 * day, DeleteAge: day}, {TombstoneAge: -day, DeleteAge: day},
	} {
		_, err := s.server.CleanStates(s.ctx, c)
		s.wantCode(err, jobhost.CodeInvalid)
	}
	s.wantStates(jobhost.StateQuery{Job: "j"}, "1/=0", "0/a=1")
}
