package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/state/statetest"
)

// set sets a state of a job with three tasks.
func (f *fixture) set(job string, task int, tag string, status int32) {
	f.Helper()
	f.want(f.do("PUT", fmt.Sprintf("/v1/states/%s/%d/%s?tasks=3", job, task, tag), fmt.Sprintf(`{"status":%d}`, status)), 200, `"version":`)
}

// statesOf opens a stream of states.
func (f *fixture) statesOf(path string, header ...string) *events {
	f.Helper()
	return f.open("/v1/states/"+path, header...)
}

func TestStates(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.want(f.do("GET", "/v1/states", ""), 200, `{"jobs":[]}`)
	f.want(f.do("PUT", "/v1/states/j/1/ingest?tasks=2", `{"status":-2,"message":"<b>","payload":{"a":"<"},"event_id":"e","schema_version":3}`), 200,
		`"job":"j","task":1,"tag":"ingest","status":-2,`, `"version":1,"event_id":"e","payload":{"a":`, `"schema_version":3`)
	f.want(f.do("GET", "/v1/states/j", ""), 200, `{"job":"j","tasks":2,"state":{"job":"j","task":1,"tag":"ingest","status":-2,`, `,"states":[{"job":"j","task":1,`)
	f.want(f.do("GET", "/v1/states/j?task=0", ""), 200, `"status":0,"version":0,"schema_version":1},"states":[]}`)
	f.set("j", 0, "export", 1)
	f.set("j", 1, "export", 1)
	var report jobhost.StateReport
	if err := json.Unmarshal([]byte(f.do("GET", "/v1/states/j?run=", "").body), &report); err != nil || len(report.States) != 3 {
		t.Errorf("got %+v, %v", report, err)
	}
	f.want(f.do("GET", "/v1/states?limit=1", ""), 200, `{"jobs":[{"job":"j","tasks":2,"states":3,`)
	f.want(f.do("DELETE", "/v1/states/j", ""), 204)
	f.want(f.do("DELETE", "/v1/states/j", ""), 404)
	f.want(f.do("GET", "/v1/states/j/watch", ""), 404, "there are no states of job j")
}

func TestStatesRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.set("j", 0, "a", 1)
	deep := `{"status":1,"payload":{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}}"
	tests := []struct {
		name, method, path, body string
		status                   int
		text                     string
	}{
		{"task", "PUT", "j/x/a", `{"status":1}`, 400, `"field":"task"`},
		{"task below 0", "PUT", "j/-1/a", `{"status":1}`, 400, `"field":"task"`},
		{"task that isn't there", "PUT", "j/3/a", `{"status":1}`, 400, "it has 3"},
		{"tag", "PUT", "j/0/a%2Fb", `{"status":1}`, 400, "is not a tag"},
		{"tag of the host", "PUT", "j/0/_run", `{"status":1}`, 403, "the host's own"},
		{"job", "PUT", "a%2Fb/0/a?tasks=1", `{"status":1}`, 400, `"field":"id"`},
		{"run", "PUT", "j/0/a?tasks=1&run=a%2Fb", `{"status":1}`, 400, `"field":"run"`},
		{"empty run", "PUT", "j/0/a?run=", `{"status":1}`, 400, "the parameter is empty"},
		{"tasks", "PUT", "j/0/a?tasks=0", `{"status":1}`, 400, `"field":"tasks"`},
		{"many tasks", "PUT", "k/0/a?tasks=10001", `{"status":1}`, 400, `"field":"tasks"`},
		{"unknown job", "PUT", "k/0/a", `{"status":1}`, 404, "no states of job k"},
		{"no status", "PUT", "j/0/a", `{}`, 400, "status is missing"},
		{"status as text", "PUT", "j/0/a", `{"status":"1"}`, 400, "status is a string, not a whole number"},
		{"broken status", "PUT", "j/0/a", `{"status":1.5}`, 400, `"field":"status"`},
		{"large status", "PUT", "j/0/a", `{"status":2147483648}`, 400, "in range"},
		{"no status at all", "PUT", "j/0/a", `{"status":null}`, 400, `"field":"status"`},
		{"unknown member", "PUT", "j/0/a", `{"status":1,"mesage":"x"}`, 400, "did you mean message?"},
		{"other case", "PUT", "j/0/a", `{"STATUS":1}`, 400, "did you mean status?"},
		{"twice", "PUT", "j/0/a", `{"status":1,"status":2}`, 400, "duplicate"},
		{"two documents", "PUT", "j/0/a", `{"status":1}{"status":2}`, 400, "more after the end"},
		{"no object", "PUT", "j/0/a", `[1]`, 400, "the body is an array, not an object"},
		{"byte order mark", "PUT", "j/0/a", "\xef\xbb\xbf" + `{"status":1}`, 400, "byte order mark"},
		{"half", "PUT", "j/0/a", `{"status":1`, 400, "invalid JSON"},
		{"payload", "PUT", "j/0/a", `{"status":1,"payload":"x"}`, 400, "payload is a string, not an object"},
		{"payload with a member twice", "PUT", "j/0/a", `{"status":1,"payload":{"a":1,"a":2}}`, 400, "duplicate"},
		{"deep payload", "PUT", "j/0/a", deep, 400, "more than 64 deep"},
		{"large payload", "PUT", "j/0/a", `{"status":1,"payload":{"a":"` + strings.Repeat("x", 65<<10) + `"}}`, 413, `"field":"payload"`},
		{"large body", "PUT", "j/0/a", `{"status":1,"payload":{"a":"` + strings.Repeat("x", 200<<10) + `"}}`, 413, "larger than that of any state"},
		{"message", "PUT", "j/0/a", `{"status":1,"message":"` + strings.Repeat("x", 5000) + `"}`, 400, `"field":"message"`},
		{"query of a task", "GET", "j?task=x", "", 400, `"field":"task"`},
		{"query of another task", "GET", "j?task=3", "", 400, `"field":"task"`},
		{"query of a tag", "GET", "j?tag=a%20b", "", 400, `"field":"tag"`},
		{"unknown parameter", "GET", "j?tsk=1", "", 400, "did you mean task?"},
		{"cursor", "GET", "j/watch?after=" + strings.Repeat("x", 65), "", 400, `"field":"after"`},
		{"watch of a tag", "GET", "j/watch?tag=a%20b", "", 400, `"field":"tag"`},
		{"watch of an unknown run", "GET", "j/watch?run=r", "", 404, "no states of job j~r"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := *f
			f.TB = t
			f.want(f.do(test.method, "/v1/states/"+test.path, test.body), test.status, test.text)
		})
	}
	f.want(f.do("GET", "/v1/states?deleted=1", ""), 400, `"field":"deleted"`)
	f.want(f.do("GET", "/v1/states?limit=1001", ""), 400, `"field":"limit"`)
	f.want(f.do("PUT", "/v1/states/j/0/a", `{"status":1}`, "Authorization", ""), 401)
	f.want(f.do("PUT", "/v1/states/j/0/a", `{"status":1}`, "Content-Type", "text/plain"), 415)
	f.want(f.do("GET", "/v1/states/j/watch", "", "Sec-Fetch-Site", "cross-site"), 403)
}

func TestCleanStates(t *testing.T) {
	t.Parallel()
	old := statetest.NewMemory()
	old.Now = func() time.Time { return time.Now().AddDate(0, 0, -60) }
	f := setup(t, options{host: func(c *host.Config) { c.States = old }})
	f.set("j", 0, "a", 1)
	f.submit(jobhost.Spec{Worker: "test", ID: "queued", Delay: time.Hour})
	f.set("queued", 0, "a", 1)
	watched := f.statesOf("j/watch")
	clean := func(body string, status int, text string) {
		t.Helper()
		f.want(f.do("POST", "/v1/states:clean", body), status, text)
	}
	clean(`{"tombstone_age":"90d","delete_age":"30d"}`, 400, "must be longer")
	clean(`{"tombstone_age":"30d"}`, 400, `"field":"delete_age"`)
	clean(`{"tombstone_age":30,"delete_age":"90d"}`, 400, "tombstone_age is a number, not a string")
	clean(`{"tombstone_age":"30d","delete_age":"90d","dryrun":true}`, 400, "did you mean dry_run?")
	clean(`{"tombstone_age":"30d","delete_age":"90d","dry_run":"true"}`, 400, "dry_run is a string, not true or false")
	clean(`{"tombstone_age":"30d","delete_age":"90d","dry_run":true}`, 200, `{"tombstoned":1,"deleted":0,"dry_run":true}`)
	clean(`{"tombstone_age":"30d","delete_age":"90d"}`, 200, `{"tombstoned":1,"deleted":0}`)
	wantEnd(watched, jobhost.CodeNotFound)
	f.want(f.do("GET", "/v1/states/j", ""), 409, "marked as deleted")
	f.want(f.do("GET", "/v1/states/queued", ""), 200, `"status":1`)
	if got := f.do("GET", "/v1/states", ""); strings.Contains(got.body, `"j"`) {
		t.Errorf("got %s, want no deleted ones", got.body)
	}
	f.want(f.do("GET", "/v1/states?deleted=true", ""), 200, `"job":"j"`, `"deleted_at":`)
	clean(`{"tombstone_age":"1d","delete_age":"59d"}`, 200, `{"tombstoned":0,"deleted":1}`)
	f.want(f.do("GET", "/v1/states/j", ""), 404)
}

func TestWatchStates(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.set("j", 0, "a", 1)
	f.set("j", 1, "b", 2)
	e := f.statesOf("j/watch")
	want := func(e *events, id bool, event, text string) message {
		t.Helper()
		m := e.next()
		if m.event != event || !strings.Contains(m.data, text) || (m.id != "") != id {
			t.Errorf("got %+v, want %s with %s", m, event, text)
		}
		return m
	}
	want(e, false, wire.EventState, `"task":0,"tag":"a","status":1,`)
	want(e, false, wire.EventState, `"replay":true`)
	sentinel := want(e, true, wire.EventSentinel, `{"replay":true,"sentinel":true,"cursor":"`)
	f.set("j", 2, "b", 3)
	live := want(e, true, wire.EventState, `"replay":false`)
	again := f.statesOf("j/watch", "Last-Event-ID", sentinel.id)
	want(again, false, wire.EventState, `"task":2,"tag":"b","status":3,`)
	want(again, true, wire.EventSentinel, `"sentinel":true`)
	want(f.statesOf("j/watch?after="+live.id), true, wire.EventSentinel, `"sentinel":true`)
	one := f.statesOf("j/watch?after=other-1&task=1&tag=b")
	want(one, false, wire.EventState, `"task":1,"tag":"b","status":2,`)
	want(one, true, wire.EventSentinel, `"sentinel":true`)

	f.want(f.do("DELETE", "/v1/states/j", ""), 204)
	wantEnd(one, jobhost.CodeNotFound)
	wantEnd(e, jobhost.CodeNotFound)
}

func TestWatchStatesEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fixture){
		"the API stops":  func(f *fixture) { f.api.Stop() },
		"the host stops": func(f *fixture) { f.host.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, options{})
			f.set("j", 0, "a", 1)
			e := f.statesOf("j/watch")
			end(f)
			wantEnd(e, jobhost.CodeUnavailable)
		})
	}
}

// TestManyWatchers wants streams of states to count among all streams, and to
// give their place back.
func TestManyWatchers(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Streams = 2 }})
	f.set("j", 0, "a", 1)
	for range 3 {
		f.want(f.do("GET", "/v1/states/nobody/watch", ""), 404)
	}
	first := f.statesOf("j/watch")
	f.follow("")
	f.want(f.do("GET", "/v1/states/j/watch", ""), 429, "event streams")
	f.want(f.do("DELETE", "/v1/states/j", ""), 204)
	wantEnd(first, jobhost.CodeNotFound)
	for first.lines.Scan() { // its place is free when the answer has ended
		t.Errorf("got %q after the end", first.lines.Text())
	}
	f.set("j", 0, "a", 1)
	f.statesOf("j/watch")
}

// TestSlowWatcher doesn't read until there are more changes than anybody keeps for it.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	// However long the changes take to be made: the connection doesn't end before there are enough.
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Stall = time.Hour }})
	f.set("j", 0, "a", 1)
	e := f.statesOf("j/watch")
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", 60<<10) + `"}`)
	for range 600 {
		_, err := f.host.SetState(t.Context(), "", jobhost.TaskState{JobID: "j", Tag: "a", Payload: large}, 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	wantEnd(e, jobhost.CodeExhausted)
}
