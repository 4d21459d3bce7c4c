package rust_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

type (
	attempt = guesttest.Attempt
	reply   = guesttest.Reply
	stream  = guesttest.Stream
)

// call runs an entry of a guest that was put back to its beginning.
func call(t *testing.T, g *guesttest.Guest, entry string, at attempt) *attempt {
	t.Helper()
	g.Reset()
	g.Attempt = &at
	if err := g.Call(entry); err != nil && at.Failure == "" {
		t.Fatalf("%s: %v", entry, err)
	}
	return &at
}

func TestMore(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, build(t, "more"))
	for name, test := range map[string]func(*testing.T, *guesttest.Guest){
		"started": testStarted, "follow": testFollow, "meet": testMeet, "fiber": testFiber, "submit": testSubmit,
		"first": testFirst, "all": testAll, "broken": testBroken, "waste": testWaste,
	} {
		t.Run(name, func(t *testing.T) { test(t, g) })
	}
}

// init runs once, and wake before each job that finds what init has left.
func testStarted(t *testing.T, g *guesttest.Guest) {
	for range 2 {
		if got := call(t, g, "jh_run", attempt{}); string(got.Output) != "1 1" {
			t.Errorf("%s", got.Output)
		}
	}
}

func testFollow(t *testing.T, g *guesttest.Guest) {
	at := attempt{
		Input: []byte("a"),
		States: map[string][]reply{"1 a": {{
			Text: `{"job":"j","task":1,"tag":"a","status":-5,"message":"\u003chälf","timestamp":"2026-11-22T09:00:00Z","version":2,"event_id":"e","payload":{"rows":[5]},"schema_version":1}`,
		}}},
		Streams: map[string]stream{"1 a": {Messages: []reply{
			{Text: `{"state":{"status":5},"replay":true}`},
			{Text: `{"state":{"status":-2147483648,"message":"` + strings.Repeat("m", 5000) + `"},"replay":false}`, After: time.Hour},
			{Text: `{"state":{"job":"","task":0},"replay":true,"sentinel":true}`, After: time.Hour},
		}}},
	}
	got := call(t, g, "follow", at)
	want := []string{
		`State { job: "j", task: 1, tag: "a", status: -5, message: "<hälf", payload: Some("{\"rows\":[5]}"), time: "2026-11-22T09:00:00Z", version: 2 }`,
		"present 5 0", "change -2147483648 5000",
	}
	if diff := cmp.Diff(want, got.Emitted); diff != "" || string(got.Output) != "all" {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	at.Streams["1 a"] = stream{End: -7}
	if got := call(t, g, "follow", at); got.Failure != `{"message":"watch states: closed"}` {
		t.Error(got.Failure)
	}
	at.Streams["1 a"] = stream{Messages: []reply{{Text: "nonsense"}}}
	if got := call(t, g, "follow", at); got.Failure != `{"message":"watch states: I/O error"}` {
		t.Error(got.Failure)
	}
}

func testMeet(t *testing.T, g *guesttest.Guest) {
	status := func(s string, after time.Duration) reply {
		return reply{Text: `{"task":3,"status":` + s + `}`, After: after}
	}
	come := []reply{status("0", 0), status("2", time.Second)}
	event := func(after time.Duration) reply { return reply{Text: `{"state":{},"replay":false}`, After: after} }
	for _, tt := range []struct {
		name, output, failure string
		states                []reply
		watch                 stream
	}{
		{"they come", "2", "", come, stream{Messages: []reply{event(0), event(time.Second)}}},
		{
			"late", "", `{"message":"synchronize a: task 3 is at 1: not in time","code":"timeout","category":"timeout"}`,
			[]reply{status("1", 0)},
			stream{Messages: []reply{event(0)}},
		},
		{"deleted", "", `{"message":"watch states: closed"}`, come, stream{End: -7}},
		{"more changes than it holds", "2", "", come, stream{Messages: []reply{event(time.Second)}, End: -4}},
	} {
		got := call(t, g, "meet", attempt{States: map[string][]reply{"-1 a": tt.states}, Streams: map[string]stream{"-1 a": tt.watch}})
		if string(got.Output) != tt.output || got.Failure != tt.failure {
			t.Errorf("%s: %s, %s", tt.name, got.Output, got.Failure)
		}
	}
}

func testFiber(t *testing.T, g *guesttest.Guest) {
	want := []string{"one", "", strings.Repeat("long ", 1000)}
	var messages []reply
	for _, text := range want {
		messages = append(messages, reply{Text: text, After: time.Minute})
	}
	got := call(t, g, "fiber", attempt{Streams: map[string]stream{"recv": {End: -7, Messages: messages}}})
	if diff := cmp.Diff(want, got.Emitted); diff != "" || string(got.Output) != "end" {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	stopped := call(t, g, "fiber", attempt{Streams: map[string]stream{"recv": {}}, Stopped: true})
	if stopped.Failure != `{"message":"receive: cancelled or past the deadline"}` {
		t.Error(stopped.Failure)
	}
}

func testSubmit(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "submit", attempt{Ends: map[int]string{1: `{"state":"succeeded"}`}})
	if string(got.Output) != `id-1 {"state":"succeeded"}` || got.Jobs[0] != "1 worker: other\n\n" {
		t.Errorf("%s %s %q", got.Output, got.Failure, got.Jobs)
	}
}

// What is not waited for any more is dropped.
func testFirst(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "first", attempt{HTTP: func(request string) reply {
		return reply{Text: "200\n\nsecond", Never: !strings.HasPrefix(request, "GET http://1/"), After: time.Second}
	}})
	slices.Sort(got.Ops.Dropped)
	if diff := cmp.Diff([]string{"GET http://0/", "GET http://2/"}, got.Ops.Dropped); diff != "" || string(got.Output) != "second" {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	late := call(t, g, "first", attempt{HTTP: func(string) reply { return reply{Never: true} }})
	if late.Failure != `{"message":"all are late"}` || late.Ops.Elapsed != time.Minute || len(late.Ops.Dropped) != 3 {
		t.Errorf("%s after %v, dropped %q", late.Failure, late.Ops.Elapsed, late.Ops.Dropped)
	}
}

func testAll(t *testing.T, g *guesttest.Guest) {
	at := attempt{HTTP: func(request string) reply {
		after := time.Duration('5'-request[len("GET http://")]) * time.Second
		return reply{Text: "200\n\n", After: after}
	}}
	got := call(t, g, "all", at)
	if want := "1 200\n0 200\n2 200\n3 200\n4 200"; string(got.Output) != want || got.Ops.MostOpen != 2 {
		t.Errorf("%s, %d at a time", got.Output, got.Ops.MostOpen)
	}
	at.Stopped = true
	stopped := call(t, g, "all", at)
	if n := strings.Count(string(stopped.Output), "cancelled"); n != 5 || len(stopped.Ops.Requests) != 2 {
		t.Errorf("%s, sent %q", stopped.Output, stopped.Ops.Requests)
	}
}

func testBroken(t *testing.T, g *guesttest.Guest) {
	if got := call(t, g, "broken", attempt{Input: []byte("a")}); string(got.Output) != "bc" {
		t.Errorf("%s %s", got.Output, got.Failure)
	}
	const want = `{"message":"panic: range end index 4 out of range for slice of length 3","code":"panic","category":"system","severity":"critical"}`
	got := call(t, g, "broken", attempt{Input: []byte("ab")})
	if got.Failure != want || got.Kind != 1 || !strings.HasPrefix(got.Logs[0], "8 panicked at ") {
		t.Errorf("%s %q", got.Failure, got.Logs)
	}
}

// Jobs that are not put back to the beginning must not make the memory grow for ever.
func testWaste(t *testing.T, g *guesttest.Guest) {
	input := make([]byte, 70_000)
	g.Reset()
	for range 20 {
		g.Attempt = &attempt{Input: input}
		if err := g.Call("waste"); err != nil {
			t.Fatal(err)
		}
	}
	if size := g.MemorySize(); size > 4<<20 {
		t.Errorf("the memory has %d bytes", size)
	}
}
