package runtimetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// RunStates runs the part of the suite about the states of tasks and the messages
// to fibers, for the ABIs that have such calls: see guests.States.
func RunStates(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{Entry: "get"})
	for name, test := range map[string]func(*testing.T, runtime.Plugin){
		"set state": testSetState, "get": testGetState, "watch": testWatchState, "denied": testStatesDenied,
		"receive": testReceive, "mixed wait": testMixedWait, "streams stop": testStreamStops,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, p) })
	}
}

// attemptOn returns an attempt with a board.
func attemptOn(b *Board, entry, input string) *hostcall.Attempt {
	at := Attempt(entry, input)
	at.Services, at.MayWatch = b, []string{"friend"}
	return at
}

func testSetState(t *testing.T, p runtime.Plugin) {
	b := &Board{}
	payload := `{"a":"` + strings.Repeat("x", jobhost.MaxStatePayloadBytes-8) + `"}`
	for _, tt := range []struct{ input, want string }{
		{"ingest\n-5\nhälf\n" + payload, "0"},
		{"done\n2147483647\n\n", "0"},
		{"_run\n1\n\n", "-2"},
		{"\n1\n\n", "-5"},
		{strings.Repeat("x", 1000) + "\n1\n\n", "-5"},
		{"a\n1\n" + strings.Repeat("x", jobhost.MaxStateMessageBytes+1) + "\n", "-4"},
		{"a\n1\n\n" + payload + " ", "-4"},
		{"a\n1\n\nnull", "-5"},
	} {
		if got := run(t, p, attemptOn(b, "set", tt.input)); got != tt.want {
			t.Errorf("%.20q is answered with %s, want %s", tt.input, got, tt.want)
		}
	}
	set := b.Set()
	if len(set) != 2 || set[0].Tag != "ingest" || set[0].Status != -5 || set[0].TaskID != 2 || set[0].Message != "hälf" ||
		string(set[0].Payload) != payload || set[1].Status != jobhost.StatusFinished || set[1].Payload != nil {
		t.Errorf("%.300v", set)
	}
}

func testGetState(t *testing.T, p runtime.Plugin) {
	b := &Board{}
	run(t, p, attemptOn(b, "set", "a\n7\nseven\n{}"))
	for _, tt := range []struct{ input, want string }{
		{"-1\n", `{"job":"job-1","task":2,"tag":"a","status":7,"message":"seven","version":1,"payload":{}}`},
		{"1\nb", `{"job":"job-1","task":2,"tag":"a","status":7,"message":"seven","version":1,"payload":{}}`},
		{"-2\nb", "-5"},
		{"0\n" + strings.Repeat("x", 1000), "-5"},
	} {
		if got := run(t, p, attemptOn(b, "get", tt.input)); got != tt.want {
			t.Errorf("%.20q is answered with %s, want %s", tt.input, got, tt.want)
		}
	}
	if asked, want := b.Asked(), []hostcall.StateQuery{{Task: -1}, {Task: 1, Tag: "b"}}; !slices.Equal(slices.Compact(asked), want) {
		t.Errorf("asked for %+v", asked)
	}
}

func testWatchState(t *testing.T, p runtime.Plugin) {
	b := &Board{}
	run(t, p, attemptOn(b, "set", "a\n7\n\n{\"x\":\""+strings.Repeat("x", 5000)+"\"}"))
	b.Emitted = func(said string) {
		if strings.Contains(said, "sentinel") {
			b.Watched(0).Send(`{"state":{"status":2147483647}}`)
		}
	}
	if got := run(t, p, attemptOn(b, "watch", "-1\na")); got != "0" {
		t.Errorf("the watch ended with %s", got)
	}
	if len(b.emits) != 3 || len(b.emits[0]) < 5000 || !json.Valid([]byte(b.emits[0])) {
		t.Errorf("%d events, %.100q", len(b.emits), b.emits)
	}
	b.Emitted = func(string) { b.Watched(1).End(&jobhost.Error{Code: jobhost.CodeExhausted, Message: "too slow"}) }
	if got := run(t, p, attemptOn(b, "watch", "-1\na")); got != "-4" {
		t.Errorf("a slow one ended with %s", got)
	}
	if got := run(t, p, attemptOn(b, "watches", "65\n0\na")); got != "-4" {
		t.Errorf("a watch over the limit is answered with %s", got)
	}
}

func testStatesDenied(t *testing.T, p runtime.Plugin) {
	b := &Board{Workers: map[string]string{"j2": "friend", "j3": "other"}}
	for input, want := range map[string]string{
		"get 0\nj2/a": `{"job":"j2","task":0,"tag":"a","status":0,"version":0}`, "get 0\nj3/a": "-2", "get 0\nj4/a": "-2",
		"watches 1\n0\nj2/": "1", "watches 1\n0\nj3/": "-2", "watches 1\n0\nj4/": "-2", "watches 1\n0\n/a": "-5",
	} {
		entry, input, _ := strings.Cut(input, " ")
		if got := run(t, p, attemptOn(b, entry, input)); got != want {
			t.Errorf("%s %q is answered with %s, want %s", entry, input, got, want)
		}
	}
	for entry, input := range map[string]string{"set": "a\n1\n\n", "get": "0\na", "watch": "0\na", "receive": "", "mixed": "1"} {
		if got := run(t, p, Attempt(entry, input)); got != "-2" {
			t.Errorf("without services %s is answered with %s", entry, got)
		}
	}
}

func testReceive(t *testing.T, p runtime.Plugin) {
	long := strings.Repeat("x", 100_000)
	b := &Board{Sent: NewStream("one", "", long)}
	b.Emitted = func(said string) {
		if said == long {
			b.Sent.Send("last")
			b.Sent.End(jobhost.ErrFiberEnded)
		}
	}
	if got := run(t, p, attemptOn(b, "receive", "")); got != "-7" || !slices.Equal(b.emits, []string{"one", "", long, "last"}) {
		t.Errorf("it ended with %s after %d messages", got, len(b.emits))
	}
	if set := b.Set(); len(set) != 4 || set[3].Status != 4 {
		t.Errorf("%+v", set)
	}
}

func testMixedWait(t *testing.T, p runtime.Plugin) {
	for name, tt := range map[string]struct {
		input, want string
		happens     func(b *Board)
	}{
		"message": {"3600000", "0", func(b *Board) { b.Sent.Send("") }},
		"state":   {"3600000", "1", func(b *Board) { b.Watched(0).Send("{}") }},
		"end":     {"3600000", "1", func(b *Board) { b.Watched(0).End(jobhost.ErrFiberEnded) }},
		"timer":   {"1", "2", func(*Board) {}},
	} {
		b := &Board{Sent: NewStream()}
		b.Emitted = func(string) { go tt.happens(b) }
		if got := run(t, p, attemptOn(b, "mixed", tt.input)); got != tt.want {
			t.Errorf("%s: index %s, want %s", name, got, tt.want)
		}
	}
}

// testStreamStops: a guest that waits for a message is notified of a cancel. The cancel comes when the state is set,
// because earlier the call that sets it would be notified instead.
func testStreamStops(t *testing.T, p runtime.Plugin) {
	b := &Board{Sent: NewStream("first")}
	at := attemptOn(b, "receive", "")
	b.Reported = func() { go at.Cancel() }
	if got := run(t, p, at); got != "-3" {
		t.Errorf("it ended with %s", got)
	}
}
