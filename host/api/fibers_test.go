package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
)

// say sends a message and wants a status.
func (f *fixture) say(id, message string, status int, texts ...string) {
	f.Helper()
	f.want(f.do("POST", "/v1/fibers/"+id+"/messages", message, "Content-Type", wire.Bytes), status, texts...)
}

// ends waits until a fiber has ended.
func (f *fixture) ends(id string) {
	f.Helper()
	for range f.host.WatchFiber(f.Context(), jobhost.FiberQuery{ID: id}) {
	}
}

func TestFibers(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	body := `{"id":"a","worker":"test","entry":"fiber","init":{"n":1},"labels":{"k":"v"},"restart":{"when":"on_failure","initial":"2s","intensity":3}}`
	first := f.do("POST", "/v1/fibers", body)
	f.want(first, 201, `{"id":"a","worker":"test","entry":"fiber","labels":{"k":"v"},"status":"`, `"emitted":0`)
	if first.header.Get("Location") != "/v1/fibers/a" {
		t.Errorf("got location %q", first.header.Get("Location"))
	}
	f.want(f.do("POST", "/v1/fibers", body), 200, `"id":"a"`)
	f.want(f.do("POST", "/v1/fibers", strings.Replace(body, "3}", "4}", 1)), 409, `"code":"conflict"`)
	for _, bad := range []struct{ body, want string }{
		{`{"worker":"test"}`, `"field":"id"`},
		{`{"id":"x","worker":"test","init":"a","init_base64":"YQ=="}`, "both set"},
		{`{"id":"x","worker":"test","init_base64":"YQ"}`, "init_base64 is not base64"},
		{`{"id":"x","worker":"test","wroker":"test"}`, "did you mean worker"},
		{`{"id":"x","worker":"test","id":"y"}`, "duplicate"},
		{`{"id":"x","worker":"test","restart":{"when":"maybe","often":1}}`, "often"},
		{`{"id":"x","worker":"test","restart":{"when":"maybe"}}`, "not a restart policy"},
		{`{"id":"x","worker":"test","restart":{"initial":5}}`, `"field":"restart.initial"`},
		{`{"id":"x","worker":"test"}{}`, "send one JSON object"},
	} {
		f.want(f.do("POST", "/v1/fibers", bad.body), 400, bad.want)
	}
	f.want(f.do("POST", "/v1/fibers", `{"id":"x","worker":"nobody"}`), 404, `"field":"worker"`)
	f.want(f.do("POST", "/v1/fibers", `{"id":"x","worker":"test","init":"`+strings.Repeat("x", 2<<20)+`"}`), 413, `"field":"init"`)
	f.want(f.do("POST", "/v1/fibers", `{"id":"x","worker":"test","init":"`+strings.Repeat("x", 1<<20+1)+`"}`), 413, `1048577 bytes`)
	f.want(f.do("POST", "/v1/fibers", body, "Authorization", ""), 401)
	f.want(f.do("POST", "/v1/fibers?wait=6m", body), 400, `"field":"wait"`)

	f.say("a", "hello", 204)
	f.say("a", "", 204)
	f.say("b", "x", 404)
	f.say("a%2fb", "x", 400)
	f.want(f.do("POST", "/v1/fibers/a/messages", "x"), 415)
	f.say("a", strings.Repeat("x", 1<<20+1), 413, `"code":"too_large"`)
	f.want(f.do("POST", "/v1/fibers/a/messages", "x", "Content-Type", wire.Bytes, "Authorization", ""), 401)
	f.want(f.do("POST", "/v1/fibers/a/pause", ""), 200, `"status":"paused"`)
	f.say("a", "x", 409, `"code":"conflict"`)
	f.want(f.do("POST", "/v1/fibers/a/resume", ""), 200)
	f.say("a", "end", 204)
	f.ends("a")
	f.want(f.do("GET", "/v1/fibers/a", ""), 200, `"status":"completed"`, `"result":"{\"n\":1}"`)
	f.say("a", "x", 404, `"fiber_ended":true`)
	f.want(f.do("POST", "/v1/fibers/a/pause", ""), 409)
	f.want(f.do("POST", "/v1/fibers/a/interrupt", ""), 200)
	f.want(f.do("GET", "/v1/fibers/a/watch", ""), 404, `"fiber_ended":true`)
	f.want(f.do("GET", "/v1/fibers/b/watch", ""), 404)
	for _, query := range []string{"after=-1", "after=01", "replay=yes", "created_at=x", "from=1"} {
		f.want(f.do("GET", "/v1/fibers/a/watch?"+query, ""), 400)
	}
	for _, id := range []string{"x", "1.x", "!.1", ".1"} {
		f.want(f.do("GET", "/v1/fibers/a/watch", "", "Last-Event-ID", id), 400, `"field":"Last-Event-ID"`)
	}
	f.want(f.do("GET", "/v1/fibers?status=asleep", ""), 400)
	f.want(f.do("GET", "/v1/fibers?limit=0", ""), 400)
	if got := f.do("GET", "/v1/fibers?worker=test", ""); got.status != 200 || strings.Contains(got.body, "result") {
		t.Errorf("got %s", got.body)
	}
	f.want(f.do("GET", "/v1/fibers?worker=other", ""), 200, `{"fibers":[]}`)
	// Bytes that are no text are base64 both ways.
	f.want(f.do("POST", "/v1/fibers", `{"id":"b","worker":"test","entry":"fiber","init_base64":"//4="}`), 201)
	f.say("b", "end", 204)
	f.ends("b")
	f.want(f.do("GET", "/v1/fibers/b", ""), 200, `"result_base64":"//4="`)
}

// TestFiberWaits: waits for a turn and for room end when they should.
func TestFiberWaits(t *testing.T) {
	t.Parallel()
	f := setup(t, options{
		host: func(c *host.Config) { c.Fibers = host.Fibers{Max: 1, InputMessages: 1} }, api: func(c *api.Config) { c.Limits.BodyBytes = 1 << 20 },
	})
	one := `{"id":"one","worker":"test","entry":"fiber"}`
	f.want(f.do("POST", "/v1/fibers", one), 201)
	f.want(f.do("POST", "/v1/fibers?wait=10ms", strings.Replace(one, "one", "two", 1)), 429, `"field":"wait"`)
	f.say("one", "spin", 204)
	for range f.host.WatchFiber(f.Context(), jobhost.FiberQuery{ID: "one", Replay: true}) {
		break // it spins
	}
	f.say("one", "waits", 204)
	f.say("one", "x", 429, `"code":"exhausted"`)
	f.want(f.do("POST", "/v1/fibers/one/messages?wait=10ms", "x", "Content-Type", wire.Bytes), 429)
	var group sync.WaitGroup
	group.Go(func() {
		f.want(f.do("POST", "/v1/fibers/one/messages?wait=1m", "x", "Content-Type", wire.Bytes), 404, `"fiber_ended":true`)
	})
	group.Go(func() {
		f.want(f.do("POST", "/v1/fibers?wait=1m", strings.Replace(one, "one", "two", 1)), 201, `"id":"two"`)
	})
	for {
		if page, err := f.host.Fibers(t.Context(), jobhost.FiberFilter{}); err != nil {
			t.Fatal(err)
		} else if len(page.Fibers) == 2 {
			break
		}
	}
	f.want(f.do("POST", "/v1/fibers/one/interrupt", ""), 200)
	group.Wait()
	// The host stops: those who wait are told.
	group.Go(func() {
		f.want(f.do("POST", "/v1/fibers?wait=1m", strings.Replace(one, "one", "three", 1)), 503, `"code":"unavailable"`)
	})
	for {
		if _, err := f.host.Fiber(t.Context(), "three"); err == nil {
			break
		}
	}
	f.api.Stop()
	group.Wait()
}

// TestFiberWatchGoesOn: an id goes on in the life of its fiber, and not in another one.
func TestFiberWatchGoesOn(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	start := `{"id":"a","worker":"test","entry":"fiber"}`
	f.want(f.do("POST", "/v1/fibers", start), 201)
	e := f.open("/v1/fibers/a/watch")
	f.say("a", "one", 204)
	f.say("a", "\xff", 204)
	first, second := e.next(), e.next()
	if first.event != wire.EventOutput || !strings.Contains(first.data, `"data":"one"`) || !strings.HasSuffix(first.id, ".1") || !strings.Contains(second.data, `"data_base64":"/w=="`) {
		t.Errorf("got %+v, %+v", first, second)
	}
	again := f.open("/v1/fibers/a/watch", "Last-Event-ID", first.id)
	if got := again.next(); got.id != second.id {
		t.Errorf("after %s came %+v", first.id, got)
	}
	f.say("a", "end", 204)
	for _, e := range []*events{e, again} {
		if end := e.next(); end.event != wire.EventEnd || !strings.Contains(end.data, `"fiber_ended":true`) {
			t.Errorf("got %+v", end)
		}
	}
	f.want(f.do("POST", "/v1/fibers", start), 201)
	f.want(f.do("GET", "/v1/fibers/a/watch", "", "Last-Event-ID", first.id), http.StatusNotFound, `"fiber_ended":true`)
	f.want(f.do("GET", "/v1/fibers/a/watch?created_at="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), ""), http.StatusNotFound, `"fiber_ended":true`)
}
