package jobhost_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

// call runs an entry and returns what the guest did.
func call(t *testing.T, g *guesttest.Guest, entry string, at guesttest.Attempt) *guesttest.Attempt {
	t.Helper()
	g.Attempt = &at
	if err := g.Call(entry); err != nil {
		t.Fatalf("%s: %v\n%s", entry, err, g.Stderr())
	}
	return g.Attempt
}

// slow answers with the last part of the URL, which says how long that takes.
func slow(request string) guesttest.Reply {
	line, _, _ := strings.Cut(request, "\n")
	last := line[strings.LastIndexByte(line, '/')+1:]
	after, err := time.ParseDuration(last)
	return guesttest.Reply{Text: "200\ncontent-type: text/plain\n\n" + last, After: after, Never: err != nil}
}

func testFetch(t *testing.T, g *guesttest.Guest) {
	long := strings.Repeat("long ", 50_000)
	for _, tt := range []struct{ name, reply, output, failure string }{
		{"response", "404\na: b\ncontent-type: text/plain\n\na\n\nb", "404 text/plain a\n\nb", ""},
		{"bare", "204\n\n", "204  ", ""},
		{"in pieces", "200\n\n" + long, "200  " + long, ""},
		{"none", "0\nerror: dns\n\nno such \"name\"", "", `{"message":"PUT http://a/b: no such \"name\"","code":"dns","category":"network"}`},
		{"nonsense", "", "", `{"message":"read response: invalid argument"}`},
	} {
		got := call(t, g, "fetch", guesttest.Attempt{
			Input: []byte("PUT http://a/b?c"), HTTP: func(string) guesttest.Reply { return guesttest.Reply{Text: tt.reply} },
		})
		if string(got.Output) != tt.output || got.Failure != tt.failure {
			t.Errorf("%s: %q, %s", tt.name, got.Output, got.Failure)
		}
		if diff := cmp.Diff([]string{"PUT http://a/b?c\na: 1\na: 2\n\nbody"}, got.Ops.Requests); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	denied := call(t, g, "fetch", guesttest.Attempt{Input: []byte("PUT http://a")})
	if want := `{"message":"PUT http://a: not granted"}`; denied.Failure != want {
		t.Error(denied.Failure)
	}
}

func testFetchAll(t *testing.T, g *guesttest.Guest) {
	var input strings.Builder
	for i := range 30 {
		fmt.Fprintf(&input, "http://a/%ds\n", 30-i)
	}
	got := call(t, g, "all", guesttest.Attempt{Input: []byte(input.String()), HTTP: slow})
	lines := strings.Split(strings.TrimSpace(string(got.Output)), "\n")
	// The quickest of the first ten is returned first.
	if got.Failure != "" || len(lines) != 30 || lines[0] != "9 21s" || got.Ops.MostOpen != 10 || got.Ops.Elapsed > time.Minute {
		t.Errorf("%s, %q, %d at once in %v", got.Failure, lines, got.Ops.MostOpen, got.Ops.Elapsed)
	}
	stopped := call(t, g, "all", guesttest.Attempt{Input: []byte("http://a/1s\nhttp://a/2s"), HTTP: slow, Stopped: true})
	if want := `{"message":"wait: cancelled or past the deadline"}`; stopped.Failure != want || len(stopped.Ops.Dropped) != 2 {
		t.Errorf("%s, %q", stopped.Failure, stopped.Ops.Dropped)
	}
}

func testRace(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "race", guesttest.Attempt{Input: []byte("http://a/2h\nhttp://a/3s"), HTTP: slow})
	want := guesttest.Ops{
		Requests: []string{"GET http://a/2h\n\n", "GET http://a/3s\n\n"}, Dropped: []string{"GET http://a/2h"},
		MostOpen: 2, Waits: 1, Elapsed: 3 * time.Second,
	}
	if diff := cmp.Diff(want, got.Ops, cmpopts.IgnoreUnexported(want)); diff != "" || string(got.Output) != "1 3s" {
		t.Errorf("%q, %s: %s", got.Output, got.Failure, diff)
	}
}

func testWaits(t *testing.T, g *guesttest.Guest) {
	for _, tt := range []struct {
		name, url, output, failure string
		ends                       map[int]string
	}{
		{"all", "http://a/20s", `2 after 0s;0 after 20s;1 after 1m0s;id-1 id-2 {"state":"dead"}`, "", map[int]string{1: `{"state":"dead"}`}},
		{"no end", "http://a/never", `1 after 1m0s;-1 after 1h1m0s;`, `{"message":"wait for job id-1: cancelled or past the deadline"}`, nil},
	} {
		got := call(t, g, "waits", guesttest.Attempt{Input: []byte(tt.url), HTTP: slow, Ends: tt.ends})
		if string(got.Output) != tt.output || got.Failure != tt.failure {
			t.Errorf("%s: %q, %s", tt.name, got.Output, got.Failure)
		}
	}
}

// testStale: a handle of one job is invalid in the next, even if the host uses
// the same number.
func testStale(t *testing.T, g *guesttest.Guest) {
	call(t, g, "stale", guesttest.Attempt{HTTP: slow})
	got := call(t, g, "stale", guesttest.Attempt{HTTP: slow})
	if want := `{"message":"use what another attempt began: closed"}`; got.Failure != want || got.Ops.Waits != 0 {
		t.Error(got.Failure)
	}
}

func testDefer(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "defers", guesttest.Attempt{Input: []byte("http://a"), HTTP: slow})
	if diff := cmp.Diff([]string{"reply for later GET http://a\n\n"}, got.Ops.Deferred); diff != "" || string(got.Output) != "id-1" {
		t.Errorf("%q, %s: %s", got.Output, got.Failure, diff)
	}
	for payload, want := range map[string]string{
		"200\nx: y\njobhost-args: Zm9yIGxhdGVy\njobhost-request: r7\n\nbody":          "r7 for later 200 body",
		"0\nerror: timeout\njobhost-args: \njobhost-request: r7\n\nno answer in time": `{"message":"no answer in time","code":"timeout","category":"timeout"}`,
		"{}": `{"message":"read response: invalid argument"}`,
	} {
		got := call(t, g, "reply", guesttest.Attempt{Input: []byte(payload)})
		if string(got.Output)+got.Failure != want {
			t.Errorf("%q: %q, %s", payload, got.Output, got.Failure)
		}
	}
}
