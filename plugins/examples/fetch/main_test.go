package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/examples/internal/site"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// want is the expected result of testdata/urls.txt, by URL, and for an empty page its digest.
var want = map[string]page{
	"http://127.0.0.1:8181/slow/300":   {Status: 200, Bytes: 17},
	"http://127.0.0.1:8181/slow/200":   {Status: 200, Bytes: 17},
	"http://127.0.0.1:8181/slow/100":   {Status: 200, Bytes: 17},
	"http://127.0.0.1:8181/large/1000": {Status: 200, Bytes: 1000},
	"http://127.0.0.1:8181/shop/books": {Status: 200, Bytes: 272},
	"http://127.0.0.1:8181/status/404": {Status: 404, SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	"http://nowhere/":                  {Error: "GET http://nowhere/: the name is unknown"},
}

// check compares lines with the expected ones, in any order.
func check(t *testing.T, out []byte) {
	t.Helper()
	got := map[string]page{}
	for line := range bytes.Lines(out) {
		var p page
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if p.Error == "" && len(p.SHA256) != 64 {
			t.Errorf("%s has the sum %q", p.URL, p.SHA256)
		}
		url := p.URL
		if p.URL, p.MS = "", 0; want[url].SHA256 == "" {
			p.SHA256 = ""
		}
		got[url] = p
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	s := site.Site{Quick: true}
	got := jobhost.Run(fetch, jobhost.Attempt{Input: guesttest.Read(t, "testdata/urls.txt"), HTTP: s.Answer})
	if got.Err != nil || got.Done != int64(len(want)) || got.Total != got.Done {
		t.Fatalf("%v, %d of %d", got.Err, got.Done, got.Total)
	}
	check(t, got.Output)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := site.Site{Quick: true}
	for _, tt := range []struct {
		name, input string
		http        func(jobhost.Request) (*jobhost.Response, error)
		permanent   bool
		err         error
	}{
		{"no list", "# nothing\n", s.Answer, true, nil},
		{"a long list", strings.Repeat("http://a/\n", mostURLs+1), s.Answer, true, nil},
		{"nowhere to go", "http://a/", nil, false, jobhost.ErrDenied},
		{"out of time", "http://a/", func(jobhost.Request) (*jobhost.Response, error) { return nil, nil }, false, jobhost.ErrStopped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := jobhost.Run(fetch, jobhost.Attempt{Input: []byte(tt.input), HTTP: tt.http}).Err
			f, ok := errors.AsType[*jobhost.Failure](err)
			if err == nil || (ok && f.Permanent) != tt.permanent || tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestGuest: the worker does the same in wasm, 64 at a time.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	s := site.Site{Quick: true}
	answer := func(request string) guesttest.Reply { return guesttest.Reply{Text: s.AnswerText(request)} }
	g.Attempt = &guesttest.Attempt{Input: guesttest.Read(t, "testdata/urls.txt"), HTTP: answer}
	if err := g.Call("jh_run"); err != nil || g.Attempt.Kind != 0 {
		t.Fatalf("%v, %s", err, g.Attempt.Failure)
	}
	check(t, g.Attempt.Output)
	g.Attempt = &guesttest.Attempt{Input: []byte(strings.Repeat("http://a/status/204\n", 200)), HTTP: answer}
	if err := g.Call("jh_run"); err != nil || g.Attempt.Ops.MostOpen != atOnce || bytes.Count(g.Attempt.Output, []byte("\n")) != 200 {
		t.Errorf("%v, %s, %d at a time", err, g.Attempt.Failure, g.Attempt.Ops.MostOpen)
	}
}
