package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// grant lets a worker go to servers on loopback.
func grant(t testing.TB, servers ...string) *host.HTTP {
	t.Helper()
	g := &host.HTTP{Config: netproxy.Config{Policy: policy.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}}
	for _, server := range servers {
		rule, err := policy.ParseRule(server)
		if err != nil {
			t.Fatal(err)
		}
		g.Policy.Allow = append(g.Policy.Allow, rule)
	}
	return g
}

// httpHost runs guests.Ops as "test", which may go to the servers given and
// submit to itself.
func httpHost(t *testing.T, g *host.HTTP, change ...func(*host.Config)) *hosttest.Host {
	t.Helper()
	cfg := httpConfig(t, g, change...)
	h, _ := run(t, cfg)
	return h
}

func httpConfig(t *testing.T, g *host.HTTP, change ...func(*host.Config)) host.Config {
	t.Helper()
	cfg := config(t)
	w := &cfg.Workers[0]
	w.Plugin, w.Entry, w.MaySubmit, w.HTTP = guests.Ops, "fetch", []string{"test"}, g
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// TestFetch: what a server gets of a guest's request, and the guest of the answer.
func TestFetch(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", fmt.Sprintf("%s %s %s %s %q", r.Method, r.URL, r.Header.Get("X-Own"), r.Header.Get("Authorization"), body))
		w.Header()["Date"] = nil
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout "+r.Header.Get("Idempotency-Key"))
	})
	g := grant(t, s.URL)
	g.Secrets = []netproxy.Secret{{Header: "Authorization", Value: "Bearer canary-123456789", For: g.Policy.Allow}}
	h := httpHost(t, g)
	id := submit(t, h, jobhost.Spec{Payload: []byte("POST " + s.URL + "/x?y=1\nx-own: mine\n\nbody")})
	if job := wait(t, h, id); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	result, err := h.Result(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "418\ncontent-length: " + fmt.Sprint(20+len(id)) + "\ncontent-type: text/plain; charset=utf-8\nx-seen: POST /x?y=1 mine [secret] \"body\"\n\nshort and stout " + id + "/0/1"
	if got := string(result.Data); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestNoGrant: without one there is no way out, and with one only where it leads.
func TestNoGrant(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for name, tt := range map[string]struct {
		grant *host.HTTP
		want  string
	}{
		"none":             {nil, "-2"},
		"another place":    {grant(t, "https://example.com"), "0\nerror: denied\n"},
		"a special one":    {&host.HTTP{Config: netproxy.Config{Policy: policy.Policy{Allow: grant(t, s.URL).Policy.Allow}}}, "0\nerror: denied\n"},
		"the host's own":   {grant(t, s.URL), "0\nerror: denied\n"},
		"nothing at all":   {&host.HTTP{}, "0\nerror: denied\n"},
		"another method":   {grant(t, "POST "+s.URL), "0\nerror: denied\n"},
		"another path":     {grant(t, s.URL+"/only/*"), "0\nerror: denied\n"},
		"a name of it":     {grant(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)), "0\nerror: denied\n"},
		"an IPv6 spelling": {grant(t, strings.Replace(s.URL, "127.0.0.1", "[::1]", 1)), "0\nerror: denied\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := httpHost(t, tt.grant, func(c *host.Config) {
				c.Listens = func() []netip.AddrPort {
					if name != "the host's own" {
						return nil
					}
					return []netip.AddrPort{netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))}
				}
			})
			if got := answer(t, h, "fetch", "GET "+s.URL+"/"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// TestManyAtOnce: requests of one guest overlap; none is answered before all are there.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 60
	var there sync.WaitGroup
	there.Add(many)
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		there.Done()
		there.Wait()
	})
	h := httpHost(t, grant(t, s.URL))
	if got := answer(t, h, "many", fmt.Sprint(many, "\nGET ", s.URL, "/")); got != fmt.Sprint(many) {
		t.Errorf("%s responses", got)
	}
	if got := answer(t, h, "many", "65\nGET http://127.0.0.1:1/"); got != "-4" {
		t.Errorf("more than may be open are answered with %s", got)
	}
}

// TestRaceDropsTheLoser: the request that lost is cancelled on the wire.
func TestRaceDropsTheLoser(t *testing.T) {
	t.Parallel()
	cancelled := make(chan struct{})
	arrived := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-r.Context().Done()
			close(cancelled)
			return
		}
		<-arrived
		_, _ = io.WriteString(w, "first")
	})
	h := httpHost(t, grant(t, s.URL))
	if got := answer(t, h, "race", "GET "+s.URL+"/slow\x00GET "+s.URL+"/fast"); !strings.HasSuffix(got, "\n\nfirst") {
		t.Errorf("got %q", got)
	}
	<-cancelled
}

// TestWaits: a guest that waits is told of a cancel, and stopped at its deadline.
func TestWaits(t *testing.T) {
	t.Parallel()
	h := httpHost(t, nil)
	if got := answer(t, h, "pause", "20"); got != "0" {
		t.Errorf("a timer is answered with %s", got)
	}
	job := wait(t, h, submit(t, h, jobhost.Spec{Entry: "pause", Payload: []byte("3600000"), Timeout: 50 * time.Millisecond, MaxAttempts: 1}))
	if job.State != jobhost.Dead || job.Failures[0].Code != jobhost.FailTimeout {
		t.Errorf("the job is %v: %+v", job.State, job.Failures)
	}
}

// TestWaitIsTold: a guest that waits when its job is cancelled learns it at once.
func TestWaitIsTold(t *testing.T) {
	t.Parallel()
	said := make(chan string, 10)
	h := httpHost(t, nil, func(c *host.Config) {
		c.CancelGrace = time.Minute
		c.OnEvent = func(e jobhost.Event) {
			if e.Kind == jobhost.EventOutput {
				said <- string(e.Data)
			}
		}
	})
	id := submit(t, h, jobhost.Spec{Entry: "until_told"})
	if got := <-said; got != "waiting" {
		t.Fatalf("it says %q", got)
	}
	if _, err := h.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := <-said; got != "told" {
		t.Errorf("it was %q", got)
	}
}

// TestAwait: a guest waits for a job that it submitted, and is told what became of it.
func TestAwait(t *testing.T) {
	t.Parallel()
	h := httpHost(t, nil, func(c *host.Config) { c.Workers[0].PoolSize = 2 })
	var ended jobhost.Ended
	if err := json.Unmarshal([]byte(answer(t, h, "await", "worker: test\nentry: bring\nid: child\n\nhello")), &ended); err != nil {
		t.Fatal(err)
	}
	if ended.Job != "child" || ended.State != jobhost.Succeeded || ended.Result != "hello" || ended.EndedAt.IsZero() {
		t.Errorf("it was told %+v", ended)
	}
	if err := json.Unmarshal([]byte(answer(t, h, "await", "worker: test\nentry: nope\nid: other\n\n")), &ended); err != nil {
		t.Fatal(err)
	}
	if ended.State != jobhost.Dead || ended.Failure == nil || ended.Failure.Code != "no_entry" {
		t.Errorf("it was told %+v", ended)
	}
}

// deferring lets a guest leave a request to the host, and returns the job that
// brings the response when it has ended.
func deferring(t *testing.T, h *hosttest.Host, request string) (asked, brought jobhost.Job) {
	t.Helper()
	asked = wait(t, h, submit(t, h, jobhost.Spec{
		Entry: "later", Payload: []byte(request), Priority: jobhost.PriorityAt(jobhost.High.Level()), Labels: map[string]string{"customer": "7"},
	}))
	result, err := h.Result(t.Context(), asked.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	request = string(result.Data)
	if job := wait(t, h, request); job.State != jobhost.Succeeded || job.Worker != jobhost.HTTPWorker {
		t.Fatalf("the request %s is %v: %+v", request, job.State, job.Failures)
	}
	page, err := h.Jobs(t.Context(), jobhost.Filter{Parent: request})
	if err != nil || len(page.Jobs) != 1 {
		t.Fatalf("the request has %d children, %v", len(page.Jobs), err)
	}
	return asked, wait(t, h, page.Jobs[0].ID)
}

// TestDefer: the response of a request that was left to the host is a job with
// the priority and labels of the one that asked.
func TestDefer(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		w.Header()["Date"] = nil
		_, _ = io.WriteString(w, "hello")
	})
	h := httpHost(t, grant(t, s.URL))
	asked, brought := deferring(t, h, "GET "+s.URL+"/")
	if brought.State != jobhost.Succeeded || brought.Entry != "bring" || brought.Priority.Level() != jobhost.High.Level() || brought.Labels["customer"] != "7" {
		t.Errorf("brought by %+v", brought)
	}
	result, err := h.Result(t.Context(), brought.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "200\njobhost-request: " + brought.Parent + "\njobhost-args: YQpi\ncontent-length: 5\ncontent-type: text/plain; charset=utf-8\n\nhello"
	if got := string(result.Data); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if key := <-keys; key != asked.ID+"/0/1" {
		t.Errorf("the key is %q", key)
	}
}

// TestDeferFails: a request that has no response brings the reason; that of an
// attempt that fails is never sent.
func TestDeferFails(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	h := httpHost(t, grant(t, s.URL))
	_, brought := deferring(t, h, "GET http://127.0.0.1:1/")
	result, err := h.Result(t.Context(), brought.ID, 0)
	if err != nil || !bytes.HasPrefix(result.Data, []byte("0\njobhost-request: ")) || !bytes.Contains(result.Data, []byte("\nerror: denied\n")) {
		t.Errorf("got %q, %v", result.Data, err)
	}
	if job := wait(t, h, submit(t, h, jobhost.Spec{Entry: "later_fail", Payload: []byte("GET " + s.URL), MaxAttempts: 1})); job.State != jobhost.Dead {
		t.Fatalf("the job is %v", job.State)
	}
	page, err := h.Jobs(t.Context(), jobhost.Filter{Worker: jobhost.HTTPWorker})
	if err != nil || len(page.Jobs) != 1 || hits.Load() != 0 {
		t.Errorf("%d requests were left, %d sent, %v", len(page.Jobs), hits.Load(), err)
	}
	if got := answer(t, h, "later", "GET ftp://example.com"); got != "-5" {
		t.Errorf("one that can't be sent is answered with %s", got)
	}
}

// TestExtismHTTP: plugins of Extism go the same way, with the same grants and limits.
func TestExtismHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header.Get("Idempotency-Key"))
	})
	probe, err := os.ReadFile("../runtime/extismabi/testdata/probe.wasm")
	if err != nil {
		t.Fatal(err)
	}
	h := httpHost(t, grant(t, "GET "+s.URL+"/open/*"), func(c *host.Config) {
		w := &c.Workers[0]
		w.Plugin, w.Entry, w.Retry.MaxAttempts = probe, "http", 1
	})
	request := func(path string) string { return fmt.Sprintf(`{"method":"GET","url":%q}`, s.URL+path) }
	id := submit(t, h, jobhost.Spec{Payload: []byte(request("/open/x"))})
	if job := wait(t, h, id); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	if got, err := h.Result(t.Context(), id, 0); err != nil || string(got.Data) != "GET /open/x "+id+"/0/1" {
		t.Errorf("got %q, %v", got.Data, err)
	}
	job := wait(t, h, submit(t, h, jobhost.Spec{Payload: []byte(request("/closed"))}))
	if job.State != jobhost.Dead || !strings.Contains(job.Failures[0].Message, "is not allowed") {
		t.Errorf("the job is %v: %+v", job.State, job.Failures)
	}
}
