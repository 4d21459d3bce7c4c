package hostcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// onBoard runs a test on simulated time with an attempt at task 2 of "job", whose
// worker may see the states of jobs of "friend".
func onBoard(t *testing.T, test func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &runtimetest.Board{
			Workers: map[string]string{"job": "own", "of-friend": "friend", "of-other": "other"},
			Sent:    runtimetest.NewStream(),
		}
		at := &hostcall.Attempt{
			Job: "job", Task: 2, Tasks: 3, Worker: "own", Deadline: time.Now().Add(time.Minute), MayWatch: []string{"friend"},
			Limits: hostcall.Limits{LogBytes: 1 << 20, LineBytes: 1 << 10, OpenRequests: 1, Requests: 1, RequestBytes: 100}, Services: b,
		}
		test(t, at, b)
		at.Release()
		synctest.Wait()
	})
}

func TestSetState(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		payload := []byte(`{"rows":1}`)
		wantErrno(t, "set", at.SetState(t.Context(), "ingest", -7, []byte("half\nway"), payload), hostcall.OK)
		payload[2] = 'X' // the guest's memory is its own again
		want := []jobhost.TaskState{{JobID: "job", TaskID: 2, Tag: "ingest", Status: -7, Message: "half\nway", Payload: json.RawMessage(`{"rows":1}`), Version: 1}}
		if diff := cmp.Diff(want, b.Set()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSetStateRefused(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		long := func(n int) string { return strings.Repeat("x", n) }
		for _, tt := range []struct {
			name, tag, message, payload string
			want                        hostcall.Errno
		}{
			{"the longest of all", long(jobhost.MaxTagBytes), long(jobhost.MaxStateMessageBytes), `{"a":"` + long(jobhost.MaxStatePayloadBytes-8) + `"}`, hostcall.OK},
			{"no tag", "", "", "", hostcall.ErrInvalid},
			{"an odd tag", "a b", "", "", hostcall.ErrInvalid},
			{"a long tag", long(jobhost.MaxTagBytes + 1), "", "", hostcall.ErrInvalid},
			{"another job's", "of-friend/ingest", "", "", hostcall.ErrInvalid},
			{"the host's", jobhost.TagRun, "", "", hostcall.ErrDenied},
			{"any of the host's", "_mine", "", "", hostcall.ErrDenied},
			{"a long message", "a", long(jobhost.MaxStateMessageBytes + 1), "", hostcall.ErrLimit},
			{"a message that is no text", "a", "\xff", "", hostcall.ErrInvalid},
			{"a long payload", "a", "", `{"a":"` + long(jobhost.MaxStatePayloadBytes-7) + `"}`, hostcall.ErrLimit},
			{"a payload that is no object", "a", "", `[1]`, hostcall.ErrInvalid},
			{"a payload that is no JSON", "a", "", `{"a":}`, hostcall.ErrInvalid},
		} {
			wantErrno(t, tt.name, at.SetState(t.Context(), tt.tag, 1, []byte(tt.message), []byte(tt.payload)), tt.want)
		}
		if n := len(b.Set()); n != 1 {
			t.Errorf("%d were set", n)
		}
		if log, _ := at.TakeLog(); !strings.Contains(string(log), "state_set: ") || !strings.Contains(string(log), "tag _run is the host's own") {
			t.Errorf("the log is %s", log)
		}
	})
}

// TestStateErrnos: what the store's errors are for the guest.
func TestStateErrnos(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		for code, want := range map[jobhost.Code]hostcall.Errno{
			jobhost.CodeExhausted: hostcall.ErrLimit, jobhost.CodeTooLarge: hostcall.ErrLimit, jobhost.CodeInvalid: hostcall.ErrInvalid,
			jobhost.CodeNotFound: hostcall.ErrNotFound, jobhost.CodeConflict: hostcall.ErrConflict,
			jobhost.CodeUnavailable: hostcall.ErrIO, jobhost.CodeInternal: hostcall.ErrIO, jobhost.CodeDenied: hostcall.ErrDenied,
		} {
			b.Fails = fmt.Errorf("store: %w", &jobhost.Error{Code: code, Message: "on purpose"})
			wantErrno(t, string("set "+code), at.SetState(t.Context(), "a", 1, nil, nil), want)
			_, e := at.State(t.Context(), hostcall.AllTasks, "a")
			wantErrno(t, string("get "+code), e, want)
			_, e = at.WatchState(t.Context(), hostcall.AllTasks, "a")
			wantErrno(t, string("watch "+code), e, want)
		}
		// If a store can't say which worker a job belongs to, access is denied.
		b.Fails = errors.New("disk gone")
		_, e := at.State(t.Context(), 0, "of-friend/a")
		wantErrno(t, "get of another job", e, hostcall.ErrIO)
	})
}

func TestStateQueries(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		var want []hostcall.StateQuery
		for _, tt := range []struct {
			task  int32
			tag   string
			errno hostcall.Errno
			want  hostcall.StateQuery
		}{
			{hostcall.AllTasks, "", hostcall.OK, hostcall.StateQuery{Task: -1}},
			{0, "a", hostcall.OK, hostcall.StateQuery{Tag: "a"}},
			{1, jobhost.TagRun, hostcall.OK, hostcall.StateQuery{Task: 1, Tag: "_run"}},
			{1, "job/a", hostcall.OK, hostcall.StateQuery{Task: 1, Tag: "a"}},
			{-1, "job/", hostcall.OK, hostcall.StateQuery{Task: -1}},
			{-1, "of-friend/a", hostcall.OK, hostcall.StateQuery{Job: "of-friend", Task: -1, Tag: "a"}},
			{7, "of-friend/", hostcall.OK, hostcall.StateQuery{Job: "of-friend", Task: 7}},
			{-2, "a", hostcall.ErrInvalid, hostcall.StateQuery{}},
			{0, "a b", hostcall.ErrInvalid, hostcall.StateQuery{}},
			{0, "of-friend/a/b", hostcall.ErrInvalid, hostcall.StateQuery{}},
			{0, "/a", hostcall.ErrInvalid, hostcall.StateQuery{}}, // not its own job's
			{0, "../a", hostcall.ErrInvalid, hostcall.StateQuery{}},
		} {
			_, e := at.State(t.Context(), tt.task, tt.tag)
			wantErrno(t, fmt.Sprintf("get %d %q", tt.task, tt.tag), e, tt.errno)
			_, e = at.WatchState(t.Context(), tt.task, tt.tag)
			wantErrno(t, fmt.Sprintf("watch %d %q", tt.task, tt.tag), e, tt.errno)
			if tt.errno == hostcall.OK {
				want = append(want, tt.want, tt.want)
			}
		}
		if diff := cmp.Diff(want, b.Asked()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOtherJobsAreDenied: in the same way whether such a job exists or not, so that
// guests can't find out.
func TestOtherJobsAreDenied(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		said := func(job string) string {
			_, e := at.State(t.Context(), -1, job+"/a")
			wantErrno(t, "get of "+job, e, hostcall.ErrDenied)
			_, e = at.WatchState(t.Context(), -1, job+"/")
			wantErrno(t, "watch of "+job, e, hostcall.ErrDenied)
			log, _ := at.TakeLog()
			return strings.ReplaceAll(string(log), job, "JOB")
		}
		if there, away := said("of-other"), said("of-nobody"); there != away || there == "" {
			t.Errorf("of a job that is there %q, of one that isn't %q", there, away)
		}
		b.Workers["job-2"] = "own"
		said("job-2") // one of its own worker takes a grant as well
		if asked := b.Asked(); len(asked) != 0 {
			t.Errorf("%+v were asked for", asked)
		}
	})
}

func TestNoStates(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]hostcall.Services{"no services": nil, "services without": &runtimetest.Network{}} {
		at := &hostcall.Attempt{Services: s}
		wantErrno(t, name+": set", at.SetState(t.Context(), "a", 1, nil, nil), hostcall.ErrDenied)
		_, e := at.State(t.Context(), -1, "")
		wantErrno(t, name+": get", e, hostcall.ErrDenied)
		_, e = at.WatchState(t.Context(), -1, "")
		wantErrno(t, name+": watch", e, hostcall.ErrDenied)
		_, e = at.Receive()
		wantErrno(t, name+": receive", e, hostcall.ErrDenied)
	}
}

// TestStatesOfAStoppedAttempt: a cancel is reported once; past its deadline an
// attempt reports nothing.
func TestStatesOfAStoppedAttempt(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		at.Cancel()
		wantErrno(t, "set, cancelled", at.SetState(t.Context(), "a", 1, nil, nil), hostcall.ErrStopped)
		wantErrno(t, "set, once it was told", at.SetState(t.Context(), "a", 1, nil, nil), hostcall.OK)
		time.Sleep(time.Minute) // of simulated time
		wantErrno(t, "set, too late", at.SetState(t.Context(), "a", 2, nil, nil), hostcall.ErrStopped)
		_, e := at.State(t.Context(), -1, "of-friend/a")
		wantErrno(t, "get, too late", e, hostcall.ErrStopped)
		_, e = at.WatchState(t.Context(), -1, "")
		wantErrno(t, "watch, too late", e, hostcall.ErrStopped)
		if log, _ := at.TakeLog(); len(log) != 0 || len(b.Set()) != 1 {
			t.Errorf("log %s, %+v", log, b.Set())
		}
	})
}

// unasked is a board that must not be asked for the worker of a job.
type unasked struct {
	*runtimetest.Board
	t *testing.T
}

func (u *unasked) WorkerOf(context.Context, string) (string, error) {
	u.t.Error("a job was looked at")
	return "", nil
}

// TestStateWithoutGrant: a guest that may see no other states costs the queue no
// lookup, which would also take longer for existing jobs.
func TestStateWithoutGrant(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		at.MayWatch, at.Services = nil, &unasked{b, t}
		_, e := at.State(t.Context(), 0, "of-friend/a")
		wantErrno(t, "get", e, hostcall.ErrDenied)
		_, e = at.WatchState(t.Context(), 0, "of-nobody/a")
		wantErrno(t, "watch", e, hostcall.ErrDenied)
		_, e = at.State(t.Context(), 0, "job/a")
		wantErrno(t, "get one's own", e, hostcall.OK)
	})
}
