package sdktest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// jh_run returns its input with ASCII letters in upper case.
func testUpper(t *testing.T, s *sandbox) {
	check(t, s.succeed(t, newWorld(), "az AZ [`{~ 0"), "AZ AZ [`{~ 0")
	check(t, s.succeed(t, newWorld(), ""), "")
	check(t, s.succeed(t, newWorld(), "größe"), "GRößE") // bytes over 127 are none
}

// fresh counts up a variable from 0, which is as it was at the start of each job.
func testFresh(t *testing.T, s *sandbox) {
	for range 3 {
		check(t, s.succeed(t, newWorld(), ""), "1")
	}
}

// echo returns its input, of any size, and what is in it.
func testEcho(t *testing.T, s *sandbox) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, size := range []int{0, 1, 256, 64 << 10, 64<<10 + 1, 1<<20 - 1, 3} {
		input := strings.Repeat(string(every), size/256+1)[:size]
		check(t, s.succeed(t, newWorld(), input), input)
	}
}

// wide is a value that is more than an SDK has room for at first.
var wide = strings.Repeat("wide ", 2000)

// info returns what the host knows by its input.
func testInfo(t *testing.T, s *sandbox) {
	for key, want := range map[string]string{
		"job.id": "job-1", "job.task": "2", "job.tasks": "3", "job.attempt": "4", "job.priority": "high",
		"worker": "outcomes", "trace": "trace-1", "label.team": "blue", "label.none": "none",
		"config.greeting": "hello", "config.none": "none", "config.wide": wide, "config.empty": "",
		"secret.key": "s3cret", "secret.other": "denied", "nonsense": "none",
	} {
		at := s.attempt(newWorld(), key)
		at.Config["wide"], at.Config["empty"] = wide, ""
		got, _ := s.run(t, at)
		if got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != want {
			t.Errorf("%s: %v %.80q instead of %.80q: %+v", key, got.Kind, got.Output, want, got.Failure)
		}
	}
}

// log writes its input at level info, and "debugging" at level debug.
func testLog(t *testing.T, s *sandbox) {
	for level, want := range map[slog.Level]string{
		hostcall.LevelDebug: "info two\\nlines\ndebug debugging\n",
		hostcall.LevelInfo:  "info two\\nlines\n",
	} {
		at := s.attempt(newWorld(), "two\nlines")
		at.Limits.LogLevel = level
		got, log := s.run(t, at)
		if got.Kind != jobhost.OutcomeSucceeded || len(got.Output) != 0 {
			t.Errorf("%v, %q: %+v", got.Kind, got.Output, got.Failure)
		}
		check(t, log, want)
	}
}

// odd is a text that has to be escaped in JSON.
const odd = "it \"broke\" \\ in\ttwo: größe"

// fail fails for good, with all that can be said about it.
func testFail(t *testing.T, s *sandbox) {
	f := s.fail(t, newWorld(), odd)
	if f.Retryable || f.Code != "bad_input" || f.Category != jobhost.CategoryValidation || f.Message != text.Line(odd, 4096) {
		t.Errorf("%+v", f)
	}
	// Some languages have only texts there.
	var context map[string]any
	if err := json.Unmarshal([]byte(f.Context), &context); err != nil || len(context) != 1 || fmt.Sprint(context["seen"]) != "true" {
		t.Errorf("context %s, %v", f.Context, err)
	}
}

// retry fails with its input as the message, and may be tried again.
func testRetry(t *testing.T, s *sandbox) {
	for _, message := range []string{"later", odd, `{"code":"injected"}`} {
		f := s.fail(t, newWorld(), message)
		if !f.Retryable || f.Message != text.Line(message, 4096) || f.Code == "injected" {
			t.Errorf("%q: %+v", message, f)
		}
	}
}

// snooze wants to run again in 1500 ms.
func testSnooze(t *testing.T, s *sandbox) {
	got, _ := s.run(t, s.attempt(newWorld(), ""))
	if got.Kind != jobhost.OutcomeSnoozed || got.Snooze != 1500*time.Millisecond {
		t.Errorf("%v for %v: %+v", got.Kind, got.Snooze, got.Failure)
	}
}

// panic ends as the language ends a program that is wrong, with "boom".
func testPanic(t *testing.T, s *sandbox) {
	got, log := s.run(t, s.attempt(newWorld(), ""))
	if got.Kind != jobhost.OutcomeFailed {
		t.Fatalf("%v with %q", got.Kind, got.Output)
	}
	if !strings.Contains(got.Failure.Message+log, "boom") {
		t.Errorf("%+v\n%s", got.Failure, log)
	}
}

// draw returns 8 random bytes in hex, which differ from job to job.
func testDraw(t *testing.T, s *sandbox) {
	seen := map[string]bool{}
	for range 4 {
		got := s.succeed(t, newWorld(), "")
		if len(got) != 16 || strings.Trim(got, "0123456789abcdef") != "" {
			t.Errorf("%q is not 8 bytes in hex", got)
		}
		if seen[got] {
			t.Errorf("%s was drawn in two jobs", got)
		}
		seen[got] = true
	}
}

// count adds 1 to the key "count" and returns the sum.
func testCount(t *testing.T, s *sandbox) {
	w := newWorld()
	check(t, s.succeed(t, w, ""), "1")
	check(t, s.succeed(t, w, ""), "2")
	w.keys["count"] = item{value: []byte("-9007199254740995")}
	check(t, s.succeed(t, w, ""), "-9007199254740994")
	w.keys["count"] = item{value: fmt.Append(nil, math.MaxInt64-1)}
	check(t, s.succeed(t, w, ""), fmt.Sprint(math.MaxInt64))
	w.keys["count"] = item{value: []byte("no number")}
	s.fail(t, w, "")
}

// keep returns the value of the key "k", or else sets it to its input.
func testKeep(t *testing.T, s *sandbox) {
	for _, value := range []string{"kept", "", long} {
		w := newWorld()
		check(t, s.succeed(t, w, value), "")
		check(t, s.succeed(t, w, "other"), value)
	}
}

// swap sets the key "k" by its version, and then by one that it doesn't have.
func testSwap(t *testing.T, s *sandbox) {
	for _, before := range []map[string]item{{}, {"k": {[]byte("old"), 7}}, {"k": {[]byte("old"), 1 << 40}}} {
		w := newWorld()
		w.keys = before
		check(t, s.succeed(t, w, "new"), "ok conflict")
		check(t, string(w.keys["k"].value), "new")
	}
}

// fetch returns status and body of the URL that is its input.
func testFetch(t *testing.T, s *sandbox) {
	for url, want := range map[string]string{
		siteHello: "200 hello", siteMissing: "404 no\n\nsuch page", siteLong: "200 " + long,
	} {
		w := newWorld()
		check(t, s.succeed(t, w, url), want)
		if got := w.requests(); !cmp.Equal(got, []string{"GET " + url}) {
			t.Errorf("sent %q", got)
		}
	}
	if got := s.succeed(t, newWorld(), siteUnknown); !strings.HasPrefix(got, "error: ") || len(got) < len("error: dns") {
		t.Errorf("without a response: %q", got)
	}
}

// race returns the body that comes first of two URLs, and drops the other.
func testRace(t *testing.T, s *sandbox) {
	for _, input := range []string{siteHello + " " + siteNever, siteNever + " " + siteHello} {
		w := newWorld()
		w.sentFirst(siteNever) // so that it is seen to be dropped
		var dropped []string
		s.ended = func() { dropped = w.givenUp() }
		check(t, s.succeed(t, w, input), "hello")
		s.ended = nil
		if !cmp.Equal(dropped, []string{"GET " + siteNever}) {
			t.Errorf("%s: dropped %q", input, dropped)
		}
	}
}

// timeout waits for a timer of 10 ms.
func testTimeout(t *testing.T, s *sandbox) {
	start := time.Now()
	check(t, s.succeed(t, newWorld(), ""), "late")
	if took := time.Since(start); took < 10*time.Millisecond {
		t.Errorf("10 ms have passed in %v", took)
	}
}

// child submits a job with its input as the payload, and returns the id.
func testChild(t *testing.T, s *sandbox) {
	for _, payload := range []string{"a text", "worker: x\n\nsecond\n", ""} {
		w := newWorld()
		check(t, s.succeed(t, w, payload), "job-of-other")
		if diff := cmp.Diff([]string{"0 other " + payload}, w.submitted); diff != "" {
			t.Error(diff)
		}
	}
}

// spread tells everybody how far it is, in every way there is.
func testSpread(t *testing.T, s *sandbox) {
	w := newWorld()
	check(t, s.succeed(t, w, "news"), "50")
	set := w.Set()
	if len(set) != 1 || set[0].TaskID != 2 || set[0].Tag != "half" || set[0].Status != 50 || set[0].Message != "half" || len(set[0].Payload) != 0 {
		t.Errorf("states %+v", set)
	}
	type lists [][]string
	want := lists{{"news"}, {"1/2"}, {"1 seen"}, {"1 1"}}
	if diff := cmp.Diff(want, lists{w.emitted, w.progress, w.metrics, w.observed}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]hostcall.StateQuery{{Task: 2, Tag: "half"}}, w.Asked()); diff != "" {
		t.Error(diff)
	}
}

// defer lets the host send a request later, and bring the response to echo.
func testDefer(t *testing.T, s *sandbox) {
	w := newWorld()
	check(t, s.succeed(t, w, siteHello), "")
	if diff := cmp.Diff([]string{"GET " + siteHello + " echo args"}, w.deferred); diff != "" {
		t.Error(diff)
	}
}

// inbox returns the first message that the fiber is sent.
func testInbox(t *testing.T, s *sandbox) {
	for _, message := range []string{"message", long, ""} {
		w := newWorld()
		w.Sent = runtimetest.NewStream(message, "another")
		check(t, s.succeed(t, w, ""), message)
	}
}
