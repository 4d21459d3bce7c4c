package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
)

// events is an open stream.
type events struct {
	*fixture
	lines *bufio.Scanner
}

// message is one message of a stream; comment is set for comments.
type message struct{ id, event, data, comment string }

// follow opens a stream of events, and returns when it is live.
func (f *fixture) follow(query string, header ...string) *events {
	f.Helper()
	return f.open("/v1/events"+query, header...)
}

// open opens a stream, and returns when it is live.
func (f *fixture) open(path string, header ...string) *events {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), "GET", "http://"+f.addr+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := f.http.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != wire.Stream {
		f.Fatalf("got %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	e := &events{f, bufio.NewScanner(resp.Body)}
	e.lines.Buffer(nil, 1<<20)
	if hello := e.next(); hello.comment == "" {
		f.Fatalf("got %+v, want a comment first", hello)
	}
	return e
}

// next returns the next message or comment.
func (e *events) next() (m message) {
	e.Helper()
	for e.lines.Scan() {
		name, value, ok := strings.Cut(e.lines.Text(), ": ")
		switch {
		case !ok:
			return m
		case name == "":
			m.comment = value
		case name == "id":
			m.id = value
		case name == "event":
			m.event = value
		case name == "data":
			m.data = value
		}
	}
	e.Fatalf("the stream ended: %v", e.lines.Err())
	return m
}

// probe makes events until the stream has one, and returns that: only then is it sure to
// have what happens next.
func (e *events) probe() message {
	e.Helper()
	heard, stop := context.WithCancel(e.Context())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for heard.Err() == nil {
			if _, err := e.host.Submit(heard, jobhost.Spec{Worker: "test", Payload: []byte("probe")}); err != nil && heard.Err() == nil {
				e.Error(err)
			}
			<-tick.C
		}
	})
	defer group.Wait()
	defer stop()
	return e.next()
}

func TestEvents(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	e := f.follow("")
	first := e.probe()
	var event jobhost.Event
	if err := json.Unmarshal([]byte(first.data), &event); err != nil || event.Seq == 0 || string(event.Kind) != first.event {
		t.Fatalf("got %+v, %v", first, err)
	}
	id := f.submit(jobhost.Spec{Worker: "test", ID: "a", Entry: "fail_permanent", Payload: []byte("line\nbreak")})
	var kinds []string
	for len(kinds) == 0 || kinds[len(kinds)-1] != "ended" {
		m := e.next()
		if err := json.Unmarshal([]byte(m.data), &event); err != nil {
			t.Fatal(err)
		}
		if event.Job == id {
			kinds = append(kinds, m.event)
		}
	}
	if got := strings.Join(kinds, " "); got != "submitted started dead ended" {
		t.Errorf("got %s", got)
	}

	again := f.follow("?job=a", "Last-Event-ID", first.id)
	for _, kind := range kinds {
		if m := again.next(); m.event != kind {
			t.Errorf("again: got %+v, want %s", m, kind)
		}
	}
	restarted := f.follow("?job=a", "Last-Event-ID", "otherepoch.1")
	if m := restarted.next(); m.event != wire.EventResync {
		t.Errorf("after a restart: got %+v, want resync", m)
	}
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Streams = 1 }})
	for _, id := range []string{"x", "1", ".1", "a.", "a.-1", "a.+1", "a.01", "a.1.2", "a.18446744073709551616", "a.1x", strings.Repeat("a", 99) + ".1"} {
		f.want(f.do("GET", "/v1/events", "", "Last-Event-ID", id), 400, "Last-Event-ID")
	}
	f.want(f.do("GET", "/v1/events?after=-1", ""), 400, `"field":"after"`)
	f.want(f.do("GET", "/v1/events?job=a%2Fb", ""), 400, `"field":"id"`)
	f.follow("")
	f.want(f.do("GET", "/v1/events", ""), 429, "event streams")
}

func TestEventsKeepAlive(t *testing.T) {
	t.Parallel()
	f := setup(t, options{
		api:   func(c *api.Config) { c.Limits.KeepAlive = 20 * time.Millisecond },
		serve: api.ServeConfig{RequestTimeout: 50 * time.Millisecond},
	})
	e := f.follow("")
	for range 10 { // longer than other requests may take
		if m := e.next(); m.comment == "" {
			t.Errorf("got %+v, want a comment", m)
		}
	}
}

func TestEventsEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(*fixture)
		code jobhost.Code
	}{
		{"the API stops", func(f *fixture) { f.api.Stop() }, jobhost.CodeUnavailable},
		{"the host stops", func(f *fixture) { f.host.Stop() }, jobhost.CodeUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, options{})
			e := f.follow("")
			test.end(f)
			wantEnd(e, test.code)
		})
	}
}

func wantEnd(e *events, code jobhost.Code) {
	e.Helper()
	m := e.next()
	for m.event != wire.EventEnd {
		m = e.next()
	}
	var p wire.Problem
	if err := json.Unmarshal([]byte(m.data), &p); err != nil || p.Code != code || p.Detail == "" {
		e.Errorf("got %+v (%v), want an end with code %s", m, err, code)
	}
}

// TestSlowReader doesn't read until there are far more events than anybody
// keeps for it, and must be told so then (A17).
func TestSlowReader(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	e := f.follow("")
	e.probe()
	for range 300 { // of 64 KiB each, to fill the sockets' buffers
		f.finish(jobhost.Spec{Worker: "test", Entry: "emit_big", Payload: []byte("65536")})
	}
	wantEnd(e, jobhost.CodeExhausted)
}
