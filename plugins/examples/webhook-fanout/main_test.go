package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/examples/internal/site"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

const body = `{"id":"order-7","type":"order.created","data":{"total":42}}`

// attempt is an attempt on the site, with existing keys.
func attempt(s *site.Site, input []byte, keys map[string]string) jobhost.Attempt {
	return jobhost.Attempt{Input: input, HTTP: s.Answer, Keys: keys, Worker: "webhook-fanout", MaySubmit: []string{"webhook-fanout"}}
}

// payloads are those of the jobs that were submitted for deliver.
func payloads(t *testing.T, submitted []string) (out [][]byte) {
	t.Helper()
	for _, text := range submitted {
		head, payload, _ := strings.Cut(text, "\n\n")
		if !strings.Contains(head, "worker: webhook-fanout\nentry: deliver\nlabel.event: order-7") {
			t.Errorf("submitted %s", head)
		}
		out = append(out, []byte(payload))
	}
	return out
}

// TestFanOut follows an event to its end: the flaky receiver has it after two
// attempts of its own job, and no receiver has it twice.
func TestFanOut(t *testing.T) {
	t.Parallel()
	s := &site.Site{}
	event := guesttest.Read(t, "testdata/order.json")
	first := jobhost.Run(fanOut, attempt(s, event, nil))
	want := `{"event":"order-7","delivered":2,"had":0,"retrying":["http://127.0.0.1:8182/hook/flaky"],` +
		`"refused":[{"subscriber":"http://127.0.0.1:8182/hook/gone","reason":"the server answered 410"}]}`
	if diff := cmp.Diff(want, string(first.Output)); diff != "" || first.Err != nil {
		t.Fatalf("%v: %s", first.Err, diff)
	}
	jobs := payloads(t, first.Submitted)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs were submitted", len(jobs))
	}
	second := jobhost.Run(deliverOne, attempt(s, jobs[0], first.Keys))
	if f, ok := errors.AsType[*jobhost.Failure](second.Err); !ok || f.Code != "http_503" || f.Permanent {
		t.Errorf("the second time: %v", second.Err)
	}
	third := jobhost.Run(deliverOne, attempt(s, jobs[0], second.Keys))
	if third.Err != nil || string(third.Output) != "delivered" {
		t.Errorf("the third time: %q, %v", third.Output, third.Err)
	}
	again := jobhost.Run(fanOut, attempt(s, event, third.Keys))
	if again.Err != nil || !strings.Contains(string(again.Output), `"delivered":0,"had":3,`) || len(again.Submitted) != 0 {
		t.Errorf("submitted again: %s, %v, %q", again.Output, again.Err, again.Submitted)
	}
	for _, receiver := range []string{"stock", "mail", "flaky"} {
		if got := s.Received(receiver); len(got) != 1 || got[0].Body != body || !strings.HasPrefix(got[0].Key, "order-7/") {
			t.Errorf("%s has %q", receiver, got)
		}
	}
}

// TestCrash: an attempt that ends half-way leaves no records, and the next one
// posts with the same keys.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := &site.Site{}
	var posts int
	at := attempt(s, guesttest.Read(t, "testdata/order.json"), nil)
	at.HTTP = func(r jobhost.Request) (*jobhost.Response, error) {
		if posts++; posts > 1 {
			return nil, &jobhost.ResponseError{Reason: jobhost.ReasonCancelled, Message: "the host stops"}
		}
		return s.Answer(r)
	}
	got := jobhost.Run(fanOut, at)
	if !errors.Is(got.Err, jobhost.ErrStopped) || len(got.Keys) != 0 || len(got.Submitted) != 0 {
		t.Fatalf("%v, %v", got.Err, got.Keys)
	}
	if got := jobhost.Run(fanOut, attempt(s, at.Input, nil)); got.Err != nil || len(s.Received("stock")) != 1 || len(s.Received("mail")) != 1 {
		t.Errorf("%v, %q", got.Err, s.Received("stock"))
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer jobhost.Answer
		good   bool
		final  bool
	}{
		{"taken", jobhost.Answer{Response: &jobhost.Response{Status: 204}}, true, false},
		{"moved", jobhost.Answer{Response: &jobhost.Response{Status: 302}}, false, true},
		{"unknown", jobhost.Answer{Response: &jobhost.Response{Status: 404}}, false, true},
		{"too many", jobhost.Answer{Response: &jobhost.Response{Status: 429}}, false, false},
		{"down", jobhost.Answer{Err: &jobhost.ResponseError{Reason: jobhost.ReasonConnection}}, false, false},
		{"not granted", jobhost.Answer{Err: &jobhost.ResponseError{Reason: jobhost.ReasonDenied}}, false, true},
		{"nonsense", jobhost.Answer{Err: jobhost.ErrInvalid}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := verdict(tt.answer); (err == nil) != tt.good || final(err) != tt.final {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBadEvents(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"", `{"id":"a","data":1}`, `{"id":"","subscribers":["http://a"]}`, `{"id":"a b","subscribers":["http://a"]}`} {
		got := jobhost.Run(fanOut, jobhost.Attempt{Input: []byte(payload)})
		if f, ok := errors.AsType[*jobhost.Failure](got.Err); !ok || !f.Permanent {
			t.Errorf("%q: %v", payload, got.Err)
		}
	}
}

// TestGuest: the worker does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	s := &site.Site{}
	keys := map[string]string{}
	run := func(entry string, input []byte) *guesttest.Attempt {
		g.Attempt = &guesttest.Attempt{
			Input: input, Keys: keys, Info: map[string]string{"worker": "webhook-fanout"},
			HTTP: func(request string) guesttest.Reply { return guesttest.Reply{Text: s.AnswerText(request)} },
		}
		if err := g.Call(entry); err != nil {
			t.Fatalf("%v\n%s", err, g.Stderr())
		}
		return g.Attempt
	}
	first := run("jh_run", guesttest.Read(t, "testdata/order.json"))
	var out outcome
	if err := json.Unmarshal(first.Output, &out); err != nil || out.Delivered != 2 || len(keys) != 2 || len(first.Jobs) != 1 {
		t.Fatalf("%s, %s, %v", first.Output, first.Failure, keys)
	}
	_, payload, _ := strings.Cut(first.Jobs[0], "\n\n")
	before := fmt.Sprint(maps.Clone(keys))
	if second := run("deliver", []byte(payload)); !strings.Contains(second.Failure, `"code":"http_503"`) || fmt.Sprint(keys) != before {
		t.Errorf("%s, %s", second.Output, second.Failure)
	}
	if third := run("deliver", []byte(payload)); string(third.Output) != "delivered" || len(keys) != 3 {
		t.Errorf("%s, %s", third.Output, third.Failure)
	}
}
