package js_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

// TestCalls runs the entries of testdata/calls.js one after the other in one
// instance that is not put back.
func TestCalls(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, build(t, "testdata/calls.js"))
	for _, part := range []struct {
		name string
		test func(*testing.T, *guesttest.Guest)
	}{
		{"results", testResults},
		{"states", testStates},
		{"barrier", testBarrier},
		{"fiber", testFiber},
		{"jobs", testJobs},
		{"metrics", testMetrics},
		{"HTTP", testHTTP},
		{"waits", testWaits},
		{"keys", testKeys},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, g) })
	}
}

// call runs an attempt. A failure is its output, too.
func call(t *testing.T, g *guesttest.Guest, entry string, at guesttest.Attempt) (string, *guesttest.Attempt) {
	t.Helper()
	g.Attempt = &at
	if err := g.Call(entry); err != nil {
		t.Fatalf("%s: %v\n%s", entry, err, g.Stderr())
	}
	return string(at.Output) + at.Failure, &at
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%.300q\ninstead of\n%.300q", got, want)
	}
}

func testStates(t *testing.T, g *guesttest.Guest) {
	_, at := call(t, g, "reports", guesttest.Attempt{})
	warning := "a -2 🟡 " + strings.Repeat("w", 1356) + "… "
	want := []string{"a 1 🟢 Started ", "a -7 x\ny " + `{"b":1}`, "a -1 🔴 oh ", warning, "a 2147483647 ⚫ Finished "}
	if diff := cmp.Diff(want, at.Sets); diff != "" {
		t.Error(diff)
	}
	got, _ := call(t, g, "reports", guesttest.Attempt{Errno: -4})
	if !strings.HasPrefix(got, `{"message":"set state a: over the limit","code":"limit","context":{"stack":"`) {
		t.Error(got)
	}
	got, at = call(t, g, "follows", guesttest.Attempt{
		States: map[string][]guesttest.Reply{"1 j2/a": {{Text: `{"job":"j2","task":1,"status":5,"message":"hälf","payload":{"rows":[5]}}`}}},
		Streams: map[string]guesttest.Stream{"1 j2/a": {End: -4, Messages: []guesttest.Reply{
			{Text: `{"state":{"status":5},"replay":true}`},
			{Text: `{"replay":true,"sentinel":true}`},
			{Text: `{"state":{"status":-7,"message":"` + strings.Repeat("m", 5000) + `"},"replay":false}`, After: time.Hour},
		}}},
	})
	check(t, got, `5 hälf {"rows":[5]}; 5 true false;  true true; -7 false false; watch state j2/a: over the limit`)
	if at.Ops.Elapsed != time.Hour {
		t.Error(at.Ops.Elapsed)
	}
}

func testBarrier(t *testing.T, g *guesttest.Guest) {
	const event = `{"state":{},"replay":false}`
	status := func(s, message string, after time.Duration) guesttest.Reply {
		return guesttest.Reply{Text: `{"task":3,"status":` + s + `,"message":"` + message + `"}`, After: after}
	}
	for _, tt := range []struct {
		want   string // the beginning
		states []guesttest.Reply
		watch  guesttest.Stream
	}{
		{
			"2",
			[]guesttest.Reply{status("0", "", 0), status("2", "", time.Second)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event}, {Text: event, After: time.Second}}},
		},
		{
			`{"message":"synchronize a: task 3 is at 1 (half)","code":"timeout","category":"timeout"}`,
			[]guesttest.Reply{status("1", "half", 0)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event}}},
		},
		{
			`{"message":"watch state a: closed","code":"closed",`,
			[]guesttest.Reply{status("1", "", 0)},
			guesttest.Stream{End: -7},
		},
		{ // more changes than it holds
			"2",
			[]guesttest.Reply{status("1", "", 0), status("2", "", time.Second)},
			guesttest.Stream{Messages: []guesttest.Reply{{Text: event, After: time.Second}}, End: -4},
		},
	} {
		got, at := call(t, g, "meets", guesttest.Attempt{
			States: map[string][]guesttest.Reply{"-1 a": tt.states}, Streams: map[string]guesttest.Stream{"-1 a": tt.watch},
		})
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s instead of %s", got, tt.want)
		}
		if len(at.Logs) > 0 {
			t.Errorf("logged %q", at.Logs)
		}
	}
}

func testFiber(t *testing.T, g *guesttest.Guest) {
	streams := map[string]guesttest.Stream{"recv": {End: -7, Messages: []guesttest.Reply{
		{Text: "one"}, {Text: ""}, {Text: strings.Repeat("x", 100_000), After: time.Second}, {Text: "last", After: time.Hour},
	}}}
	got, at := call(t, g, "fiber", guesttest.Attempt{Streams: streams})
	check(t, got, "end")
	if diff := cmp.Diff([]string{"one3", "0", "xxxxx100000", "last4"}, at.Emitted); diff != "" {
		t.Error(diff)
	}
	got, at = call(t, g, "twice", guesttest.Attempt{Streams: streams})
	check(t, got, "end")
	if diff := cmp.Diff([]string{"one", "0", "xxxxx100000", "last4"}, at.Emitted); diff != "" {
		t.Error(diff)
	}
	got, _ = call(t, g, "fiber", guesttest.Attempt{})
	if !strings.HasPrefix(got, `{"message":"inbox: not granted","code":"denied",`) {
		t.Error(got)
	}
}

func testJobs(t *testing.T, g *guesttest.Guest) {
	got, at := call(t, g, "family", guesttest.Attempt{Ends: map[int]string{3: `{"state":"succeeded"}`}})
	check(t, got, "id-1 id-2 id-3 succeeded")
	want := []string{
		"0 worker: w\ndelay: 1500ms\ntasks: 2\nlabel.b:  \nlabel.a: x \n\n" + `{"a":1}`,
		"1 worker: w\nrun_at: 1970-01-01T00:00:00.000Z\ncontent_type: a/b\nmax_attempts: 1\n\n\x00\xff",
		"1 worker: w\ntimeout: 5s\n\np",
	}
	if diff := cmp.Diff(want, at.Jobs); diff != "" {
		t.Error(diff)
	}
	got, _ = call(t, g, "misspelled", guesttest.Attempt{})
	if !strings.Contains(got, "there is no option prio; there are worker, id, contentType") {
		t.Error(got)
	}
	got, _ = call(t, g, "twoLines", guesttest.Attempt{})
	if !strings.Contains(got, "worker must be one line") {
		t.Error(got)
	}
}

func testMetrics(t *testing.T, g *guesttest.Guest) {
	got, at := call(t, g, "metrics", guesttest.Attempt{})
	check(t, got, "")
	if diff := cmp.Diff([]string{`1 n{b="x\"\\\n"}`, "2 g", `3 h{code="200"}`}, at.Metrics); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0 2", "1 -1.5", "2 1"}, at.Observed); diff != "" {
		t.Error(diff)
	}
}

func testHTTP(t *testing.T, g *guesttest.Guest) {
	got, at := call(t, g, "post", guesttest.Attempt{HTTP: func(request string) guesttest.Reply {
		if strings.HasPrefix(request, "PUT") {
			return guesttest.Reply{Text: "404\n\n\n\nbody"}
		}
		return guesttest.Reply{Text: "201\na: 1\na: b: c\n\n" + strings.Repeat("x", 50_000), After: time.Second}
	}})
	check(t, got, "201 true 1, b: c 2 "+strings.Repeat("x", 50_000)+"; 404 false  0 \n\nbody")
	want := []string{"POST http://x/\nx-a: 1\nx-a: 2\nb: 3\ncontent-type: application/json\n\n" + `{"n":1}`, "PUT http://x/\n\n\xff"}
	if diff := cmp.Diff(want, at.Ops.Requests); diff != "" || at.Ops.MostOpen != 2 {
		t.Error(at.Ops.MostOpen, diff)
	}
	for reply, want := range map[string]string{
		"200\n\n{\"a\": 1}":               `{"a":1}`,
		"503\n\n":                         `{"message":"the server answered 503","code":"http_503","category":"network"}`,
		"404\n\n":                         `{"message":"the server answered 404","code":"http_404","category":"business"}`,
		"0\nerror: dns\n\nno such host":   `{"message":"GET http://x/a: no such host","code":"dns","category":"network"}`,
		"0\nerror: denied\n\nnot allowed": `{"message":"GET http://x/a: not allowed","code":"denied","category":"validation"}`,
		"nonsense":                        `{"message":"what came is no response","code":"protocol","category":"network"}`,
	} {
		got, _ := call(t, g, "get", guesttest.Attempt{Input: []byte("a"), HTTP: func(string) guesttest.Reply { return guesttest.Reply{Text: reply} }})
		check(t, got, want)
	}
	got, at = call(t, g, "later", guesttest.Attempt{HTTP: func(string) guesttest.Reply { return guesttest.Reply{} }})
	check(t, got, "id-1")
	if diff := cmp.Diff([]string{`done {"o":7} ` + "POST http://x/?q\n\nb"}, at.Ops.Deferred); diff != "" {
		t.Error(diff)
	}
}

func testWaits(t *testing.T, g *guesttest.Guest) {
	slow := func(request string) guesttest.Reply {
		return guesttest.Reply{Text: "200\n\n", After: time.Second, Never: strings.Contains(request, "slower")}
	}
	got, at := call(t, g, "mirrors", guesttest.Attempt{HTTP: slow})
	check(t, got, "0 200")
	if diff := cmp.Diff([]string{"GET http://slower/"}, at.Ops.Dropped); diff != "" {
		t.Error(diff)
	}
	got, at = call(t, g, "mirrors", guesttest.Attempt{HTTP: func(string) guesttest.Reply { return guesttest.Reply{Never: true} }})
	check(t, got, "2 late")
	if len(at.Ops.Dropped) != 2 || at.Ops.Elapsed != 2*time.Second {
		t.Errorf("%+v", at.Ops)
	}
	// What a job leaves behind is not waited for by the next.
	got, _ = call(t, g, "leaves", guesttest.Attempt{HTTP: slow})
	check(t, got, "left")
	got, at = call(t, g, "chain", guesttest.Attempt{})
	check(t, got, "done")
	if at.Ops.Elapsed != 5*time.Second {
		t.Error(at.Ops.Elapsed)
	}
	got, at = call(t, g, "chain", guesttest.Attempt{Stopped: true})
	if !strings.HasPrefix(got, `{"message":"wait: cancelled or past the deadline","code":"stopped"`) || at.Kind != 1 {
		t.Error(got)
	}
}

func testKeys(t *testing.T, g *guesttest.Guest) {
	got, _ := call(t, g, "sums", guesttest.Attempt{Keys: map[string]string{"n": "40"}})
	check(t, got, "42 -4611686018427387862 -4611686018427387862")
	got, _ = call(t, g, "sums", guesttest.Attempt{Keys: map[string]string{"n": "x"}})
	if !strings.HasPrefix(got, `{"message":"add to key n: invalid argument","code":"invalid"`) {
		t.Error(got)
	}
}
