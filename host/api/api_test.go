package api_test

import (
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
)

func TestSubmit(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	first := f.do("POST", "/v1/jobs", `{"worker":"test","id":"a","payload":"x"}`)
	f.want(first, 201, `{"id":"a","state":"ready","deduplicated":false}`)
	if location := first.header.Get("Location"); location != "/v1/jobs/a" {
		t.Errorf("got location %q", location)
	}
	f.reach("a", jobhost.Succeeded)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","id":"a","payload":"x"}`), 200, `{"id":"a","state":"succeeded","deduplicated":true}`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","id":"a","payload":"y"}`), 409, `"code":"conflict"`, `"field":"id"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","callback":{"url":"https://example.com/hook"}}`), 403, `"code":"denied"`, `"field":"callback"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"jobhost.webhook"}`), 403, `"code":"denied"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","callback":{}}`), 400, `"field":"callback"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","callback":{"uri":"https://example.com/hook"}}`), 400, `did you mean url`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"nobody"}`), 404, `"code":"not_found"`, `"field":"worker"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","tasks":-1,"max_attempts":-1}`), 400, `"errors":[`, `"field":"max_attempts"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test"}`, "Content-Type", "application/json; charset=utf-8"), 201)
}

func TestSubmitWait(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	got := f.do("POST", "/v1/jobs?wait=30s", `{"worker":"test","id":"a","payload":{"n":1}}`)
	f.want(got, 201, `"state":"succeeded"`, `"content_type":"application/json"`, `"result":"{\"n\":1}"`)
	f.want(f.do("POST", "/v1/jobs?wait=30s", `{"worker":"test","id":"a","payload":{"n":1}}`), 200, `"deduplicated":true`, `"results":[`)
	f.want(f.do("POST", "/v1/jobs?wait=30s", `{"worker":"test","payload_base64":"//4="}`), 201, `"result_base64":"//4="`)
	f.want(f.do("POST", "/v1/jobs?wait=30s", `{"worker":"test","tasks":3,"payload":"x"}`), 201, `{"task":2,"state":"succeeded","size":1,"result":"x"}]}`)
	f.want(f.do("POST", "/v1/jobs?wait=30s", `{"worker":"test","entry":"fail_permanent","payload":"no luck"}`), 201, `"state":"dead"`, "no luck")
	f.want(f.do("POST", "/v1/jobs?wait=10ms", `{"worker":"test","entry":"spin","id":"s"}`), 202, `"id":"s"`)
	f.reach("s", jobhost.Running)
	f.want(f.do("GET", "/v1/jobs/s?wait=10ms", ""), 202, `"state":"running"`)
	f.want(f.do("GET", "/v1/jobs/a?wait=1s", ""), 200, `"state":"succeeded"`)
	for _, wait := range []string{"1", "-1s", "6m", "x", "1e9h"} {
		f.want(f.do("GET", "/v1/jobs/a?wait="+wait, ""), 400, `"field":"wait"`)
	}
}

// TestWaitOutlivesTimeouts checks that waits are not cut off by the deadlines
// of the server that other requests have.
func TestWaitOutlivesTimeouts(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{RequestTimeout: 50 * time.Millisecond}})
	f.want(f.do("POST", "/v1/jobs?wait=300ms", `{"worker":"test","delay":"1h"}`), 202, `"state":"scheduled"`)
	f.want(f.do("POST", "/v1/jobs?wait=20s", `{"worker":"test","delay":"300ms","payload":"x"}`), 201, `"result":"x"`)
}

func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Waits = 1 }})
	id := f.submit(jobhost.Spec{Worker: "test", Delay: time.Hour})
	var group sync.WaitGroup
	group.Go(func() {
		for f.do("GET", "/v1/jobs/"+id+"?wait=1m", "").status == 429 {
			// One of the short waits below was there first.
		}
	})
	for {
		got := f.do("GET", "/v1/jobs/"+id+"?wait=1ms", "")
		if got.status == 429 {
			f.want(got, 429, `"code":"exhausted"`, `"retry_after":"1s"`)
			if got.header.Get("Retry-After") != "1" {
				t.Errorf("got Retry-After %q", got.header.Get("Retry-After"))
			}
			break
		}
	}
	if _, err := f.host.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	group.Wait()
}

func TestQueueFull(t *testing.T) {
	t.Parallel()
	f := setup(t, options{host: func(c *host.Config) { c.Workers[0].QueueCapacity = 1 }})
	f.submit(jobhost.Spec{Worker: "test", Delay: time.Hour})
	got := f.do("POST", "/v1/jobs", `{"worker":"test"}`)
	f.want(got, 429, `"code":"exhausted"`, `"retry_after":"1s"`, "the queue of test is full", `"field":"worker"`)
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("got Retry-After %q", got.header.Get("Retry-After"))
	}
	soon := &jobhost.Error{Code: jobhost.CodeExhausted, Message: "full", RetryAfter: 250 * time.Millisecond}
	f = setup(t, options{api: func(c *api.Config) { c.Server = api.Serving(&broken{serverOf(c), soon}) }})
	got = f.do("GET", "/v1/jobs/a", "")
	f.want(got, 429, `"code":"exhausted"`, `"retry_after":"250ms"`)
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("got Retry-After %q, want whole seconds, rounded up", got.header.Get("Retry-After"))
	}
}

func TestJobRoutes(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.finish(jobhost.Spec{Worker: "test", ID: "good", Payload: []byte("<script>alert(1)</script>")})
	f.finish(jobhost.Spec{Worker: "test", ID: "bad", Entry: "fail_permanent", Payload: []byte("no luck")})
	f.submit(jobhost.Spec{Worker: "test", ID: "later", Delay: time.Hour})
	f.finish(jobhost.Spec{Worker: "test", ID: "log", Entry: "log_echo", Payload: []byte("said")})

	f.want(f.do("GET", "/v1/jobs", ""), 200, `"id":"good"`, `"id":"bad"`)
	f.want(f.do("GET", "/v1/jobs?worker=none", ""), 200, `{"jobs":[]}`)
	f.want(f.do("GET", "/v1/jobs?state=dead&limit=1", ""), 200, `"id":"bad"`)
	f.want(f.do("GET", "/v1/jobs?state=deaf", ""), 400, `"field":"state"`)
	f.want(f.do("GET", "/v1/jobs?limit=1000000000", ""), 400, `"field":"limit"`)
	f.want(f.do("GET", "/v1/jobs?limit=0", ""), 400, `"field":"limit"`)
	f.want(f.do("GET", "/v1/jobs?after=yesterday", ""), 400, `"field":"after"`)
	f.want(f.do("GET", "/v1/jobs?cursor='%20OR%201=1", ""), 400, `"field":"cursor"`)
	f.want(f.do("GET", "/v1/jobs?wroker=x", ""), 400, `did you mean worker?`)
	f.want(f.do("GET", "/v1/jobs?limit=1&limit=2", ""), 400, `given twice`)
	f.want(f.do("GET", "/v1/jobs/bad", ""), 200, `"failures":[`, `no luck`)
	f.want(f.do("GET", "/v1/jobs/none", ""), 404)
	f.want(f.do("GET", "/v1/jobs/a%2Fb", ""), 400)
	f.want(f.do("GET", "/v1/jobs/%2e%2e/workers", ""), 404)
	f.want(f.do("GET", "/v1/jobs/later/why", ""), 200, `"code":"scheduled"`)
	f.want(f.do("GET", "/v1/jobs/log/logs", ""), 200, `"lines":["info said"]`)
	f.want(f.do("GET", "/v1/jobs/good/logs", ""), 200, `[]`)
	f.want(f.do("POST", "/v1/jobs/later/cancel", ""), 200, `"state":"cancelled"`)
	f.want(f.do("POST", "/v1/jobs/good/cancel", ""), 409)
	f.want(f.do("POST", "/v1/jobs/good/retry", ""), 409)
	f.want(f.do("DELETE", "/v1/jobs/later", ""), 204)
	f.want(f.do("GET", "/v1/jobs/later", ""), 404)

	f.want(f.do("GET", "/v1/dead", ""), 200, `"job":"bad"`)
	f.want(f.do("GET", "/v1/dead?category=unknown&code=failed&text=LUCK&after=2020-01-01T00:00:00Z", ""), 200, `"job":"bad"`)
	f.want(f.do("GET", "/v1/dead?label=team%3Dblue", ""), 200, `"letters":[]`)
	for _, bad := range []string{"label=team", "category=sad", "after=now", "limit=0", "retried=perhaps", "worker=NO"} {
		f.want(f.do("GET", "/v1/dead?"+bad, ""), 400)
	}
	f.want(f.do("GET", "/v1/dead:summary", ""), 200, `"deaths":1`)
	f.want(f.do("POST", "/v1/dead:retry?dry_run=true&rate=10", ""), 200, `"matched":1,"changed":1,"dry_run":true`)
	f.want(f.do("POST", "/v1/dead:delete?jobs=nobody,good", ""), 200, `"changed":0`, `"failed":[`)
	f.want(f.do("POST", "/v1/dead:delete?jobs=bad&worker=test", ""), 400, "both set")
	f.want(f.do("POST", "/v1/dead:delete?jobs=", ""), 400, "empty")
	f.want(f.do("POST", "/v1/dead:delete?worker=", ""), 400, "empty")
	f.want(f.do("POST", "/v1/dead:delete?code=failed&dry_run=", ""), 400, "empty")
	f.want(f.do("POST", "/v1/jobs/bad/retry?task=", ""), 400, "empty")
	f.want(f.do("POST", "/v1/dead:delete?text=luck&label=a%3D1&label=b%3D2", ""), 200, `"matched":0`)
	f.want(f.do("POST", "/v1/dead:delete?label=a%3D1&label=a%3D2", ""), 400, "twice")
	f.want(f.do("POST", "/v1/dead:retry?rate=fast", ""), 400, "rate")
	f.want(f.do("POST", "/v1/jobs/bad/retry?task=one", ""), 400)
	f.want(f.do("POST", "/v1/jobs/bad/retry?task=7", ""), 404)
	f.want(f.do("POST", "/v1/jobs/bad/cancel?task=0", ""), 409)
	f.want(f.do("GET", "/v1/dead?state=dead", ""), 400, "unknown parameter")
	f.want(f.do("GET", "/v1/dead/bad", ""), 200, `"id":"bad"`)
	f.want(f.do("GET", "/v1/dead/good", ""), 404, "succeeded")
	f.want(f.do("DELETE", "/v1/dead/good", ""), 404)
	f.want(f.do("POST", "/v1/dead/good/retry", ""), 404)
	f.want(f.do("POST", "/v1/dead/bad/retry", ""), 200, `"id":"bad"`)
	f.want(f.do("GET", "/v1/jobs/bad?wait=20s", ""), 200, `"state":"dead"`)
	f.want(f.do("DELETE", "/v1/dead/bad", ""), 204)

	f.want(f.do("GET", "/v1/workers", ""), 200, `"name":"test"`)
	f.want(f.do("GET", "/v1/workers/test", ""), 200, `"name":"test"`)
	f.want(f.do("GET", "/v1/workers/tset", ""), 404)
	f.want(f.do("GET", "/v1/workers/tests", ""), 404, `did you mean test?`)
}

func TestResult(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.finish(jobhost.Spec{Worker: "test", ID: "one", Payload: []byte("<script>alert(1)</script>")})
	f.finish(jobhost.Spec{Worker: "test", ID: "many", Tasks: 2, Payload: []byte{0xff}})
	f.submit(jobhost.Spec{Worker: "test", ID: "none", Delay: time.Hour})
	got := f.do("GET", "/v1/jobs/one/result", "")
	f.want(got, 200)
	if got.body != "<script>alert(1)</script>" {
		t.Errorf("got %q", got.body)
	}
	for name, want := range map[string]string{
		"Content-Type":            "application/octet-stream",
		"Content-Disposition":     `attachment; filename="one.0"`,
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got.header.Get(name) != want {
			t.Errorf("got %s %q, want %q", name, got.header.Get(name), want)
		}
	}
	f.want(f.do("GET", "/v1/jobs/many/result", ""), 200,
		`[{"task":0,"state":"succeeded","size":1,"result_base64":"/w=="},{"task":1,"state":"succeeded","size":1,"result_base64":"/w=="}]`)
	if got := f.do("GET", "/v1/jobs/many/result?task=1", ""); got.body != "\xff" {
		t.Errorf("got %q", got.body)
	}
	f.want(f.do("GET", "/v1/jobs/many/result?task=2", ""), 404)
	f.want(f.do("GET", "/v1/jobs/many/result?task=-1", ""), 400, `"field":"task"`)
	f.want(f.do("GET", "/v1/jobs/none/result", ""), 409)
}

func TestProbes(t *testing.T) {
	t.Parallel()
	notYet := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host is starting"}
	var mu sync.Mutex
	var reason error = notYet
	f := setup(t, options{api: func(c *api.Config) {
		c.Ready = func() error {
			mu.Lock()
			defer mu.Unlock()
			return reason
		}
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "jobhost_jobs_total 1\n") })
	}})
	f.want(f.do("GET", "/healthz", "", "Host", "10.0.0.7:7070", "Authorization", ""), 200, `{"status":"ok"}`)
	f.want(f.do("GET", "/readyz", ""), 503, "starting")
	mu.Lock()
	reason = nil
	mu.Unlock()
	f.want(f.do("GET", "/readyz", ""), 200, `{"status":"ready"}`)
	impaired := setup(t, options{api: func(c *api.Config) { c.Impaired = func() []string { return []string{"payload store b is away"} } }})
	f.want(impaired.do("GET", "/readyz", ""), 200, `{"status":"ready","impaired":["payload store b is away"]}`)
	f.want(f.do("GET", "/metrics", ""), 200, "jobhost_jobs_total 1")
	f.api.Stop()
	f.want(f.do("GET", "/readyz", ""), 503, "stopping")
	f.want(setup(t, options{}).do("GET", "/metrics", ""), 404)
}

// TestStarting asks a host that has no server yet, and again when it has.
func TestStarting(t *testing.T) {
	t.Parallel()
	var started atomic.Bool
	f := setup(t, options{api: func(c *api.Config) {
		server := serverOf(c)
		c.Server = func() (jobhost.Server, error) {
			if started.Load() {
				return server, nil
			}
			return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host is starting"}
		}
	}})
	for _, path := range []string{"/v1/workers", "/v1/jobs/a", "/v1/events", "/v1/fibers"} {
		f.want(f.do("GET", path, ""), 503, "the host is starting")
	}
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test"}`), 503, "the host is starting")
	f.want(f.do("GET", "/v1/workers", "", "Authorization", ""), 401)
	f.want(f.do("GET", "/healthz", ""), 200)
	f.want(f.do("GET", "/openapi.json", ""), 200)
	started.Store(true)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() { f.want(f.do("GET", "/v1/workers", ""), 200, `"name":"test"`) })
	}
	asking.Wait()
}

func TestObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	f := setup(t, options{api: func(c *api.Config) {
		c.Observe = func(route string, status int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			seen[route] = status
		}
	}})
	f.do("GET", "/v1/jobs/none", "")
	f.do("GET", "/nothing", "")
	f.do("PUT", "/v1/jobs", "")
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"/v1/jobs/{id}": 404, "": 404, "/v1/jobs": 405}
	if !maps.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

// The retry of a dead letter leaves alone what somebody cancelled.
func TestRetryOfADeadLetter(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.submit(jobhost.Spec{Worker: "test", ID: "mixed", Entry: "fail_permanent", Tasks: 2, Delay: 100 * time.Millisecond})
	f.want(f.do("POST", "/v1/jobs/mixed/cancel?task=1", ""), 200, `"index":1,"state":"cancelled"`)
	f.want(f.do("GET", "/v1/jobs/mixed?wait=10s", ""), 200, `"index":0,"state":"dead"`)
	f.want(f.do("POST", "/v1/dead/mixed/retry", ""), 200, `"index":1,"state":"cancelled"`)
	f.want(f.do("GET", "/v1/jobs/mixed?wait=10s", ""), 200, `"index":1,"state":"cancelled"`)
}
