package jobhost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

func testReports(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "reports", guesttest.Attempt{})
	want := []string{"a 1 🟢 Started ", "a -7 x\ny " + `{"b":1}`, "a -1 🔴 oh "}
	if diff := cmp.Diff(want, got.Sets); diff != "" || got.Failure != "" {
		t.Errorf("%s: %s", got.Failure, diff)
	}
	refused := call(t, g, "reports", guesttest.Attempt{Errno: -4})
	if want := `{"message":"set state a: over the limit\u000aset state a: over the limit\u000aset state a: over the limit"}`; refused.Failure != want {
		t.Error(refused.Failure)
	}
}

func testFollows(t *testing.T, g *guesttest.Guest) {
	long := strings.Repeat("m", 5000)
	at := guesttest.Attempt{
		States: map[string][]guesttest.Reply{"1 j2/a": {{
			Text: `{"job":"j2","task":1,"tag":"a","status":5,"message":"\u003chälf\n","timestamp":"2026-11-22T09:00:00Z","version":2,"event_id":"e","payload":{"rows":[5]},"schema_version":1}`,
		}}},
		Streams: map[string]guesttest.Stream{"1 j2/a": {End: -4, Messages: []guesttest.Reply{
			{Text: `{"state":{"status":5},"replay":true}`},
			{Text: `{"state":{"job":"","task":0},"replay":true,"sentinel":true}`},
			{Text: `{"state":{"status":-2147483648,"message":"` + long + `"},"replay":false}`, After: time.Hour},
		}}},
	}
	got := call(t, g, "follows", at)
	const want = `j2 1 a 5 "<hälf\n" {"rows":[5]} 2026-11-22 09:00:00 +0000 UTC 2;5 true false 0;0 true true 0;-2147483648 false false 5000;end`
	if string(got.Output) != want || got.Failure != "" || got.Ops.Elapsed != time.Hour {
		t.Errorf("%s, %s after %v", got.Output, got.Failure, got.Ops.Elapsed)
	}
	denied := call(t, g, "follows", guesttest.Attempt{})
	if want := `{"message":"get state j2/a: not granted"}`; denied.Failure != want {
		t.Error(denied.Failure)
	}
	at.Streams["1 j2/a"] = guesttest.Stream{End: -7, Messages: []guesttest.Reply{{Text: "nonsense"}}}
	odd := call(t, g, "follows", at)
	if want := `{"message":"watch states: I/O error"}`; odd.Failure != want {
		t.Error(odd.Failure)
	}
}

func testMeets(t *testing.T, g *guesttest.Guest) {
	const event = `{"state":{},"replay":false}`
	status := func(s, message string, after time.Duration) guesttest.Reply {
		return guesttest.Reply{Text: `{"task":3,"status":` + s + `,"message":"` + message + `"}`, After: after}
	}
	for _, tt := range []struct {
		name, output, failure string
		states                []guesttest.Reply
		watch                 guesttest.Stream
	}{
		{
			"they come", "2", "",
			[]guesttest.Reply{status("0", "", 0), status("2", "", time.Second)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event}, {Text: event, After: time.Second}}},
		},
		{
			"late", "", `{"message":"synchronize a: task 3 is at 1 (half): not in time","code":"timeout","category":"timeout"}`,
			[]guesttest.Reply{status("1", "half", 0)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event}}},
		},
		{"deleted", "", `{"message":"watch states: closed"}`, []guesttest.Reply{status("1", "", 0)}, guesttest.Stream{End: -7}},
		{
			"more changes than it holds", "2", "",
			[]guesttest.Reply{status("1", "", 0), status("2", "", time.Second)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event, After: time.Second}}, End: -4},
		},
	} {
		got := call(t, g, "meets", guesttest.Attempt{
			States: map[string][]guesttest.Reply{"-1 a": tt.states}, Streams: map[string]guesttest.Stream{"-1 a": tt.watch},
		})
		if string(got.Output) != tt.output || got.Failure != tt.failure {
			t.Errorf("%s: %q, %s", tt.name, got.Output, got.Failure)
		}
	}
}

func testFiber(t *testing.T, g *guesttest.Guest) {
	at := guesttest.Attempt{Streams: map[string]guesttest.Stream{"recv": {End: -7, Messages: []guesttest.Reply{
		{Text: "one"},
		{Text: ""},
		{Text: strings.Repeat("x", 100_000), After: time.Second},
		{Text: "", After: time.Hour},
		{Text: "last", After: 2 * time.Hour},
	}}}}
	got := call(t, g, "fiber", at)
	if want := `3 0 100000 "" "last" 1`; string(got.Output) != want || got.Failure != "" {
		t.Errorf("%.200q, %s", got.Output, got.Failure)
	}
	if denied := call(t, g, "fiber", guesttest.Attempt{}); denied.Failure != `{"message":"receive: not granted"}` {
		t.Error(denied.Failure)
	}
	stopped := call(t, g, "fiber", guesttest.Attempt{Streams: at.Streams, Stopped: true})
	if want := `{"message":"wait: cancelled or past the deadline"}`; stopped.Failure != want {
		t.Error(stopped.Failure)
	}
}
