package api_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
)

func TestToken(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	const job = `{"worker":"test"}`
	tests := []struct {
		name, authorization string
		status              int
	}{
		{"right", "Bearer " + token, 201},
		{"other case of the scheme", "bearer " + token, 201},
		{"none", "", 401},
		{"wrong", "Bearer " + strings.Repeat("x", len(token)), 401},
		{"prefix", "Bearer " + token[:len(token)-1], 401},
		{"longer", "Bearer " + token + "x", 401},
		{"other scheme", "Basic " + token, 401},
		{"no scheme", token, 401},
		{"large", "Bearer " + strings.Repeat("x", 16<<10), 401},
	}
	bodies := map[string]bool{}
	for _, test := range tests {
		got := f.do("POST", "/v1/jobs", job, "Authorization", test.authorization)
		if got.status != test.status {
			t.Errorf("%s: got status %d, want %d", test.name, got.status, test.status)
		}
		if test.status == 401 {
			bodies[got.body] = true
			if got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", test.name)
			}
		}
	}
	if len(bodies) != 1 {
		t.Errorf("the answers tell what was wrong with a token: %v", bodies)
	}
	f.want(f.do("POST", "/v1/jobs?token="+token, job, "Authorization", ""), 401)
	f.want(f.do("POST", "/v1/jobs?token="+token, job), 400, "unknown parameter")

	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.addr+"/v1/jobs", strings.NewReader(job))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Authorization"] = []string{"Bearer " + token, "Bearer " + token}
	resp, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("two tokens: got status %d", resp.StatusCode)
	}
}

func TestReadsWithoutToken(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/payload", "/v1/jobs/a/result", "/v1/jobs/a/logs", "/v1/kv/w", "/v1/workers", "/v1/events", "/v1/dead"} {
		f.want(f.do("GET", path, "", "Authorization", ""), 401)
	}
	f.want(f.do("GET", "/v1/jobs", ""), 200)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		f.want(f.do("GET", path, "", "Authorization", ""), 200)
	}
	for _, change := range []string{"POST /v1/jobs/a/cancel", "POST /v1/jobs/a/retry", "DELETE /v1/jobs/a", "DELETE /v1/dead/a", "POST /v1/dead/a/retry"} {
		method, path, _ := strings.Cut(change, " ")
		f.want(f.do(method, path, "", "Authorization", ""), 401)
	}
}

// TestOpenReads: this machine may read without the token where the host says so,
// unless a proxy has left its mark.
func TestOpenReads(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.OpenReads = true }})
	f.want(f.do("GET", "/v1/jobs", "", "Authorization", ""), 200)
	f.want(f.do("GET", "/v1/jobs", "", "Authorization", "Bearer wrong"), 401)
	f.want(f.do("GET", "/v1/jobs", "", "Authorization", "", "X-Forwarded-For", "10.0.0.1"), 401)
	f.want(f.do("GET", "/v1/jobs", "", "X-Forwarded-For", "10.0.0.1"), 200)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test"}`, "Authorization", ""), 401)
}

func TestMetricsWithoutToken(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, guarded := range []bool{false, true} {
		f := setup(t, options{api: func(c *api.Config) { c.Metrics, c.GuardMetrics = metrics, guarded }})
		want := map[bool]int{false: 200, true: 401}[guarded]
		f.want(f.do("GET", "/metrics", "", "Authorization", ""), want)
		f.want(f.do("GET", "/metrics", ""), 200)
	}
}

func TestBruteForce(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	count := map[int]int{}
	for range 200 {
		got := f.do("POST", "/v1/jobs/a/cancel", "", "Authorization", "Bearer wrong")
		count[got.status]++
		if got.status == 429 && got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if count[401] < 5 || count[401] > 20 || count[429] != 200-count[401] {
		t.Errorf("got answers %v, want 401 some times and then 429", count)
	}
	// Somebody's wrong guesses don't lock the others on this machine out.
	f.want(f.do("POST", "/v1/jobs/a/cancel", ""), 404)
}

func TestHosts(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.AllowedHosts = []string{"Jobs.example.com"} }})
	_, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]int{
		f.addr: 200, "localhost:" + port: 200, "LOCALHOST": 200, "127.0.0.1": 200, "127.8.8.8:1": 200, "[::1]:" + port: 200, "[::1]": 200,
		"jobs.example.com": 200, "JOBS.example.com:443": 200,
		"evil.example.com": 421, "localhost.evil.com": 421, "127.0.0.1.evil.com:" + port: 421, "10.0.0.1": 421, "0.0.0.0": 421, "jobs.example.com.": 421,
	}
	for host, status := range tests {
		if got := f.do("GET", "/v1/jobs", "", "Host", host); got.status != status {
			t.Errorf("host %s: got status %d, want %d", host, got.status, status)
		}
	}
}

func TestOtherSites(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	const job = `{"worker":"test"}`
	tests := []struct {
		name, method, path, body string
		header                   []string
		status                   int
	}{
		{"curl", "POST", "/v1/jobs", job, nil, 201},
		{"own page", "POST", "/v1/jobs", job, []string{"Sec-Fetch-Site", "same-origin"}, 201},
		{"typed in", "GET", "/v1/jobs", "", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		{"link", "GET", "/v1/jobs", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"cross-site fetch", "POST", "/v1/jobs", job, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same-site fetch", "POST", "/v1/jobs", job, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"old browser", "POST", "/v1/jobs", job, []string{"Origin", "http://evil.example.com"}, 403},
		{"form that navigates", "POST", "/v1/jobs", job, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"image", "GET", "/v1/events", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"form", "POST", "/v1/jobs", job, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"text", "POST", "/v1/jobs", job, []string{"Content-Type", "text/plain"}, 415},
		{"no type", "POST", "/v1/jobs", job, []string{"Content-Type", ""}, 415},
		{"latin-1", "POST", "/v1/jobs", job, []string{"Content-Type", "application/json; charset=latin1"}, 415},
		{"compressed", "POST", "/v1/jobs", job, []string{"Content-Encoding", "gzip"}, 415},
		{"lines", "POST", "/v1/jobs", job, []string{"Content-Type", "application/x-ndjson"}, 415},
		{"batch of JSON", "POST", "/v1/jobs:batch", job, nil, 415},
		{"body where none is taken", "POST", "/v1/jobs/a/cancel", "{}", nil, 400},
	}
	for _, test := range tests {
		if got := f.do(test.method, test.path, test.body, test.header...); got.status != test.status {
			t.Errorf("%s: got status %d, want %d: %s", test.name, got.status, test.status, got.body)
		}
	}
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/jobs/", "//v1/jobs", "/v1//jobs", "/v1/./jobs", "/v1/x/../jobs", "/v1/JOBS", "/v1/jobs/a/b", "/debug/pprof/", "/debug/vars", "/v1/jobs%00"} {
		f.want(f.do("GET", path, ""), 404, "nothing at this path")
	}
	got := f.do("PUT", "/v1/jobs", `{}`)
	f.want(got, 405, "POST, GET")
	if got.header.Get("Allow") != "POST, GET" {
		t.Errorf("got Allow %q", got.header.Get("Allow"))
	}
	for _, method := range []string{"OPTIONS", "PATCH", "TRACE", "post", "FOO"} {
		f.want(f.do(method, "/v1/jobs", ""), 405)
	}
	if got := f.do("HEAD", "/v1/jobs", ""); got.status != 200 || got.body != "" {
		t.Errorf("HEAD: got %d %q", got.status, got.body)
	}
}

// TestHeaders checks that every kind of answer has the headers that keep a
// browser from doing anything with it.
func TestHeaders(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.finish(jobhost.Spec{Worker: "test", ID: "a"})
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/result", "/v1/jobs/none", "/nothing", "/healthz", "/openapi.json"} {
		h := f.do("GET", path, "").header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cache-Control") != "no-store" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: got headers %v", path, h)
		}
		if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Server") != "" {
			t.Errorf("%s: got headers %v", path, h)
		}
	}
}

// endless is a body without end.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	e.read.Add(int64(len(b)))
	return len(b), nil
}

func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	const most = 8 << 20 // of what the kernel and the server take before they know
	body := &endless{}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.addr+"/v1/jobs", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 413 {
		t.Errorf("got %d %s after %d bytes", resp.StatusCode, text, body.read.Load())
	}
	if body.read.Load() > most {
		t.Errorf("%d bytes were read before the answer", body.read.Load())
	}
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","payload":"`+strings.Repeat("x", 1<<20+1)+`"}`), 413, `"field":"payload"`)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","payload":"`+strings.Repeat("x", 1<<20)+`"}`), 201)
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.MaxPayload, c.Limits.BodyBytes = 1000, 1 }})
	// One body of the largest size always fits; a second one meanwhile doesn't.
	conn := f.dial()
	conn.send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"worker\":\r\n")
	for f.do("POST", "/v1/jobs", `{"worker":"test"}`).status != 503 {
		if t.Context().Err() != nil {
			t.Fatal("both bodies were taken")
		}
	}
	conn.send("7\r\n\"test\"}\r\n0\r\n\r\n")
	if status := conn.status(); status != 201 {
		t.Errorf("the first one got status %d", status)
	}
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test"}`), 201)
}
