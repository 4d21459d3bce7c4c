package assemblyscript_test

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
		"follow": testFollow, "meet": testMeet, "fiber": testFiber, "reply": testReply, "get": testGet, "submit": testSubmit, "all": testAll, "first": testFirst,
		"metrics": testMetrics, "broken": testBroken, "texts": testTexts, "random": testRandom, "waste": testWaste,
	} {
		t.Run(name, func(t *testing.T) { test(t, g) })
	}
}

func testFollow(t *testing.T, g *guesttest.Guest) {
	at := attempt{
		Input: []byte("j2/a"),
		States: map[string][]reply{"1 j2/a": {{
			Text: `{"job":"j2","task":1,"tag":"a","status":-5,"message":"\u003chälf\n","timestamp":"2026-11-22T09:00:00Z","version":2,"event_id":"e","payload":{"rows":[5]},"schema_version":1}`,
		}}},
		Streams: map[string]stream{"1 j2/a": {End: -7, Messages: []reply{
			{Text: `{"state":{"status":5},"replay":true}`},
			{Text: `{"state":{"job":"","task":0},"replay":true,"sentinel":true}`},
			{Text: `{"state":{"status":-2147483648,"message":"` + strings.Repeat("m", 5000) + `"},"replay":false}`, After: time.Hour},
		}}},
	}
	got := call(t, g, "follow", at)
	want := []string{`j2 1 a -5 "<hälf\u000a" {"rows":[5]} 2026-11-22T09:00:00Z 2`, "5 true 0", "true true", "-2147483648 false 5000"}
	if diff := cmp.Diff(want, got.Emitted); diff != "" || string(got.Output) != "end" {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	if denied := call(t, g, "follow", attempt{}); denied.Failure != `{"message":"get state : not granted"}` {
		t.Error(denied.Failure)
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
		{"deleted", "", `{"message":"watch state a: closed"}`, come, stream{End: -7}},
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

func testReply(t *testing.T, g *guesttest.Guest) {
	for input, want := range map[string]string{
		"200\njobhost-args: YXJncw==\njobhost-request: r1\nx: 1\n\nbody": "r1 args  body",
		"200\njobhost-args: \njobhost-request: r1\n\n":                   "r1   ",
		"404\njobhost-request: r1\n\nno":                                 `{"message":": the server answered 404","code":"http_404","category":"business"}`,
		"0\nerror: dns\njobhost-request: r1\n\nno":                       `{"message":": no","code":"dns","category":"network"}`,
		"200\n\nbody": "none", "": "none", "\n\n": "none", "x\n\n": "none",
	} {
		if got := call(t, g, "reply", attempt{Input: []byte(input)}); string(got.Output)+got.Failure != want {
			t.Errorf("%q: %s %s", input, got.Output, got.Failure)
		}
	}
}

func testGet(t *testing.T, g *guesttest.Guest) {
	answer := func(text string) func(string) reply {
		return func(request string) reply { return reply{Text: strings.ReplaceAll(text, "$", request)} }
	}
	for _, tt := range []struct {
		answer func(string) reply
		kind   int32
		want   string
	}{
		{answer("200\n\n$"), 0, "PUT http://a/?secret\na: b\n\nc"},
		{answer("404\n\n"), 2, `{"message":"PUT http://a/: the server answered 404","code":"http_404","category":"business"}`},
		{answer("503\nretry-after: 1\n\n"), 1, `{"message":"PUT http://a/: the server answered 503","code":"http_503","category":"network"}`},
		{answer("0\nerror: timeout\n\nlate"), 1, `{"message":"PUT http://a/: late","code":"timeout","category":"timeout"}`},
		{answer("0\nerror: tls\n\nno"), 2, `{"message":"PUT http://a/: no","code":"tls","category":"network"}`},
		{answer("nonsense"), 1, `{"message":"PUT http://a/: I/O error","code":"unknown","category":"unknown"}`},
		{nil, 2, `{"message":"PUT http://a/: not granted","code":"denied","category":"validation"}`},
	} {
		got := call(t, g, "get", attempt{Input: []byte("http://a/?secret"), HTTP: tt.answer})
		if string(got.Output)+got.Failure != tt.want || got.Kind != tt.kind {
			t.Errorf("%s: %d %s %s", tt.want, got.Kind, got.Output, got.Failure)
		}
	}
}

func testAll(t *testing.T, g *guesttest.Guest) {
	at := attempt{HTTP: func(request string) reply {
		n := request[len("GET http://")]
		return reply{Text: "200\n\n" + string(n), After: time.Duration('5'-n) * time.Second}
	}}
	got := call(t, g, "all", at)
	if string(got.Output) != "0 1 invalid 3 4" || got.Ops.MostOpen != 2 {
		t.Errorf("%s %s, %d at a time", got.Output, got.Failure, got.Ops.MostOpen)
	}
	at.Stopped = true
	if got := call(t, g, "all", at); got.Failure != `{"message":"wait: cancelled or past the deadline"}` {
		t.Error(got.Failure)
	}
}

// What is not waited for any more is dropped.
func testFirst(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "first", attempt{HTTP: func(request string) reply {
		switch n := request[len("GET http://")]; n {
		case '0':
			return reply{Never: true}
		case '1':
			return reply{Text: "500\n\n"}
		}
		return reply{Text: "200\n\nthird", After: time.Second}
	}})
	if diff := cmp.Diff([]string{"GET http://0/"}, got.Ops.Dropped); diff != "" || string(got.Output) != "third" {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	bad := call(t, g, "first", attempt{HTTP: func(string) reply { return reply{Text: "500\n\n"} }})
	if want := `{"message":"GET http://2/: the server answered 500","code":"http_500","category":"network"}`; bad.Failure != want {
		t.Error(bad.Failure)
	}
}

func testSubmit(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "submit", attempt{Input: []byte("y"), Ends: map[int]string{1: `{"state":"succeeded"}`}})
	want := []string{"1 worker: other\nid: i\ndelay: 1500ms\ntasks: 2\nlabel.l:  \n\np\n", "0 worker: other\nlabel.x: y \n\n"}
	if diff := cmp.Diff(want, got.Jobs); diff != "" || string(got.Output) != `id-1 id-2 {"state":"succeeded"}` {
		t.Errorf("%s%s %s", diff, got.Output, got.Failure)
	}
	bad := call(t, g, "submit", attempt{Input: []byte("a\nb")})
	if want := `{"message":"submit: invalid argument: a line break in label.x"}`; bad.Failure != want || bad.Kind != 2 {
		t.Error(bad.Failure)
	}
}

func testMetrics(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "metrics", attempt{})
	want := []string{`1 seen{a="\"\\\n",b=""}`, "2 depth", "3 took", "0 2", "1 0.5", "2 1.5", "4 careful", "-4 traced 1.0, 2.5"}
	if diff := cmp.Diff(want, slices.Concat(got.Metrics, got.Observed, got.Logs)); diff != "" {
		t.Error(diff)
	}
}

func testBroken(t *testing.T, g *guesttest.Guest) {
	for input, want := range map[string]string{
		"12345":                   "panic: Index out of range",
		"that is long, and wrong": "panic: too long",
	} {
		got := call(t, g, "broken", attempt{Input: []byte(input)})
		if got.Kind != 1 || !strings.Contains(got.Failure, `"`+want+`","code":"panic"`) || len(got.Logs) != 1 || !strings.HasPrefix(got.Logs[0], "8 aborted at ") {
			t.Errorf("%s %q", got.Failure, got.Logs)
		}
	}
}

func testTexts(t *testing.T, g *guesttest.Guest) {
	if got := call(t, g, "texts", attempt{}); string(got.Output) != "ok" {
		t.Errorf("%s %s %q", got.Output, got.Failure, got.Logs)
	}
}

// jh_wake seeds Math.random anew for each job.
func testRandom(t *testing.T, g *guesttest.Guest) {
	one, two := call(t, g, "jh_run", attempt{}), call(t, g, "jh_run", attempt{})
	if len(one.Output) == 0 || string(one.Output) == string(two.Output) {
		t.Errorf("%s; %s", one.Output, two.Output)
	}
}

// Jobs that are not put back to the beginning must not make the memory grow for ever.
func testWaste(t *testing.T, g *guesttest.Guest) {
	input := make([]byte, 100_000)
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
