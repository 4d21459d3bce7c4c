package test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// deferSite is a site with a worker "ops" that may go to a server.
func deferSite(t *testing.T, server string) *site {
	t.Helper()
	s := newSite(t)
	s.write("ops.wasm", guests.Ops)
	s.write("manifest.toml", fmt.Appendf([]byte(s.manifest()), `
[worker.ops]
plugin = "ops.wasm"
entry = "later"
[worker.ops.http]
allow = [%q]
allow_private = ["127.0.0.1"]
`, server))
	return s
}

// hearing is a server that records the key of each request and answers those
// that come after up.
type hearing struct {
	*httptest.Server
	keys chan string
	up   atomic.Bool
}

func hear(t *testing.T) *hearing {
	t.Helper()
	h := &hearing{keys: make(chan string, 100)}
	hang := make(chan struct{})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := h.up.Load()
		h.keys <- r.Header.Get("Idempotency-Key")
		if !up {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = io.WriteString(w, "answer")
	}))
	t.Cleanup(func() { close(hang); h.Close() })
	return h
}

func (h *hearing) next(t *testing.T) string {
	t.Helper()
	select {
	case key := <-h.keys:
		return key
	case <-time.After(time.Minute):
		t.Fatal("no request within a minute")
		return ""
	}
}

// brought waits for the job that delivers the response to a deferred request of
// a job, and checks that there is only one.
func brought(t *testing.T, p *process, asked string) jobhost.Job {
	t.Helper()
	request := awaitChild(t, p, asked)
	awaitState(t, p, request.ID, jobhost.Succeeded)
	response := awaitChild(t, p, request.ID)
	awaitState(t, p, response.ID, jobhost.Succeeded)
	return response
}

// awaitChild returns the only job that another one has submitted.
func awaitChild(t *testing.T, p *process, parent string) jobhost.Job {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		page, err := p.Jobs(t.Context(), jobhost.Filter{Parent: parent})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Jobs) > 1 {
			t.Fatalf("job %s has %d children", parent, len(page.Jobs))
		}
		if len(page.Jobs) == 1 {
			return page.Jobs[0]
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("job %s has no child within a minute", parent)
	return jobhost.Job{}
}

// TestDeferredSurvivesKill kills a host while a deferred request is in flight: it
// is resent with the same key, and brings one response.
func TestDeferredSurvivesKill(t *testing.T) {
	t.Parallel()
	server := hear(t)
	s := deferSite(t, server.URL)
	p := s.start()
	if _, err := p.Submit(t.Context(), jobhost.Spec{ID: "asker", Worker: "ops", Payload: []byte("POST " + server.URL + "/\n\nbody")}); err != nil {
		t.Fatal(err)
	}
	before := server.next(t)
	p.kill()

	server.up.Store(true)
	p = s.start()
	if again := server.next(t); again != before || again != "asker/0/1" {
		t.Errorf("the key is %s after the restart, %s before it", again, before)
	}
	response := brought(t, p, "asker")
	result, err := p.Result(t.Context(), response.ID, 0)
	if err != nil || string(result.Data[:4]) != "200\n" || response.Worker != "ops" || response.Entry != "bring" {
		t.Errorf("%s %s brought %q, %v", response.Worker, response.Entry, result.Data, err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the host ended with %d:\n%s", code, p.logText())
	}
	if n := len(server.keys); n != 0 {
		t.Errorf("there are %d requests more", n)
	}
}

// TestDeferredAtStop: requests in flight when a host is stopped may end; those that
// don't are resent by the next host, and none brings two responses.
func TestDeferredAtStop(t *testing.T) {
	t.Parallel()
	server := hear(t)
	s := deferSite(t, server.URL)
	s.replace(`shutdown_timeout = "5s"`, `shutdown_timeout = "300ms"`)
	p := s.start()
	const many = 20
	for i := range many {
		server.up.Store(i%2 == 0)
		if _, err := p.Submit(t.Context(), jobhost.Spec{ID: fmt.Sprint("asker", i), Worker: "ops", Payload: []byte("GET " + server.URL + "/")}); err != nil {
			t.Fatal(err)
		}
		server.next(t)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the host ended with %d:\n%s", code, p.logText())
	}
	server.up.Store(true)
	p = s.start()
	for i := range many {
		brought(t, p, fmt.Sprint("asker", i))
	}
	if n := len(server.keys); n != many/2 {
		t.Errorf("%d requests were sent again, want the %d that had no answer", n, many/2)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the host ended with %d:\n%s", code, p.logText())
	}
}
