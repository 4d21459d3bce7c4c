package cluster_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// pair returns a leader with this API, and a standby.
func pair(t *testing.T, api http.Handler, options ...func(*cluster.Config)) (leader, standby *host) {
	t.Helper()
	w := newWorld(t)
	w.api = api
	leader = w.join(t, "a", options...)
	leader.leads(t)
	return leader, w.join(t, "b", options...)
}

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestForwardAsItIs: a request to a standby reaches the leader unchanged, and so does the answer the client.
func TestForwardAsItIs(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	var client atomic.Value
	_, b := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Clone(context.Background()))
		client.Store(r.RemoteAddr)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Trailer", "X-Last")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(body)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Last", "end")
	}))
	r := request(t, http.MethodPut, b.url+"/v1/kv/w/a%2Fb?x=%zz&y=1;2", strings.NewReader("hello"))
	r.Host = "jobs.example"
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	r.Header.Set("Jobhost-Client", "192.0.2.2:1") // which clients can't say
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "hello" || resp.StatusCode != http.StatusAccepted || resp.Header.Get("X-Answer") != "yes" || resp.Trailer.Get("X-Last") != "end" {
		t.Errorf("%s %q %v %v %v", resp.Status, body, resp.Header, resp.Trailer, err)
	}
	at := got.Load()
	if at.Host != "jobs.example" || at.URL.EscapedPath() != "/v1/kv/w/a%2Fb" || at.URL.RawQuery != "x=%zz&y=1;2" || at.ContentLength != 5 {
		t.Errorf("host %q path %q query %q length %d", at.Host, at.URL.EscapedPath(), at.URL.RawQuery, at.ContentLength)
	}
	if at.Header.Get("Authorization") != "Bearer x" || at.Header.Get("X-Forwarded-For") != "192.0.2.1" || at.Header.Get("Jobhost-Client") != "" {
		t.Errorf("headers %v", at.Header)
	}
	if addr, _ := client.Load().(string); !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("the client is %q", addr)
	}
}

// TestForwardStream: what the leader flushes reaches the client at once, and the leader notices when the client
// disconnects.
func TestForwardStream(t *testing.T) {
	t.Parallel()
	next, gone := make(chan string), make(chan struct{})
	_, b := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case s := <-next:
				fmt.Fprintln(w, s)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	r := request(t, http.MethodGet, b.url+"/v1/events", http.NoBody).WithContext(ctx)
	answer := make(chan *http.Response, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
		}
		answer <- resp
	}()
	next <- "0"
	resp := <-answer
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for i := range 10 {
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got %q, want %d", lines.Text(), i)
		}
		if i < 9 {
			next <- fmt.Sprint(i + 1)
		}
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(soon):
		t.Error("the leader doesn't notice that the client is gone")
	}
}

// TestForwardUpload: a body is streamed to the leader, and the answer can begin before the body has ended.
func TestForwardUpload(t *testing.T) {
	t.Parallel()
	_, b := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, "got "+lines.Text())
			_ = c.Flush()
		}
	}))
	from, to := io.Pipe()
	r := request(t, http.MethodPost, b.url+"/v1/jobs:batch", from)
	answer := make(chan *http.Response, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
		}
		answer <- resp
	}()
	fmt.Fprintln(to, 0)
	resp := <-answer
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for i := range 10 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("got %d", i) {
			t.Fatalf("got %q, want %d", lines.Text(), i)
		}
		if i < 9 {
			fmt.Fprintln(to, i+1)
		}
	}
	_ = to.Close()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
}

// TestForwardLarge: large bodies pass in both directions, even beside one whose reader is stuck.
func TestForwardLarge(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	_, b := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stuck" {
			<-stuck
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}))
	const size = 20 << 20
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			r := request(t, http.MethodPost, b.url+"/stuck", io.LimitReader(rand.Reader, size))
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	r := request(t, http.MethodPost, b.url+"/echo", io.LimitReader(rand.Reader, size))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	n, err := io.Copy(&text, resp.Body)
	_ = resp.Body.Close()
	if n != size || err != nil {
		t.Errorf("%s: %d bytes, %v: %.500q", resp.Status, n, err, text.String())
	}
	close(stuck)
	senders.Wait()
}

// TestRepeat: if the leader is lost before it answers, a request is sent to the next one if repeating it does no harm.
func TestRepeat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method, path, body string
		large                    bool
		again                    bool
	}{
		{"a read", http.MethodGet, "/", "", false, true},
		{"a change without a body", http.MethodPost, "/cancel", "", false, false},
		{"a change", http.MethodPost, "/change", "x", false, false},
		{"one that the API calls repeatable", http.MethodPost, "/submit", "id", false, true},
		{"an upload that has begun", http.MethodPost, "/submit", "id", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			came, calls := make(chan struct{}, 8), atomic.Int32{}
			hang := make(chan struct{})
			w.api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if calls.Add(1) == 1 {
					came <- struct{}{}
					<-hang
					return
				}
				fmt.Fprintf(rw, "%s %d", r.URL.Path, len(body))
			})
			repeatable := func(cfg *cluster.Config) {
				cfg.Repeatable = func(_ *http.Request, body []byte) bool { return string(body) == "id" }
			}
			a := w.join(t, "a", repeatable)
			a.leads(t)
			b := w.join(t, "b", repeatable)
			t.Cleanup(func() { close(hang) })
			body := io.Reader(strings.NewReader(tt.body))
			if tt.large {
				body = strings.NewReader(strings.Repeat("x", 100<<10))
			}
			answer := make(chan string, 1)
			go func() { answer <- do(t, request(t, tt.method, b.url+tt.path, body)) }()
			<-came
			a.proxy.Stall(postgres.ToServer)
			a.proxy.Cut()
			a.Kill()
			got := <-answer
			if again := got == fmt.Sprintf("%s %d", tt.path, len(tt.body)); again != tt.again {
				t.Errorf("got %s", got)
			}
			if !tt.again && (!strings.HasPrefix(got, "502 ") || !strings.Contains(got, "may have been carried out")) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestLoadDuringHandOver: requests and streams of many clients over a standby while the leader changes hands. Each
// request is answered, by the one or the other; each stream goes on after it was opened again.
func TestLoadDuringHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var count atomic.Int64
	w.api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stream" {
			body, _ := io.ReadAll(r.Body)
			count.Add(1)
			fmt.Fprintf(rw, "%s", body)
			return
		}
		for i := range 50 {
			fmt.Fprintln(rw, i)
			if http.NewResponseController(rw).Flush() != nil || r.Context().Err() != nil {
				return
			}
		}
	})
	hosts := []*host{w.join(t, "a"), w.join(t, "b"), w.join(t, "c")}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var asked atomic.Int64
	for _, h := range hosts {
		for i := range 4 {
			clients.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					text := fmt.Sprint(h.name, i, n)
					if i == 0 {
						text = strings.Repeat(text, 10_000) // too much to be held
					}
					if got := do(t, request(t, http.MethodPost, h.url+"/", strings.NewReader(text))); got != text {
						t.Errorf("%s: got %.300q, want %.300q", h.name, got, text)
						return
					}
					asked.Add(1)
				}
			})
		}
		clients.Go(func() {
			for ctx.Err() == nil {
				if got := do(t, request(t, http.MethodGet, h.url+"/stream", http.NoBody)); strings.Count(got, "\n") != 50 {
					t.Errorf("%s: a stream broke off: %q", h.name, got)
					return
				}
			}
		})
	}
	for i, h := range []*host{hosts[1], hosts[2], hosts[0], hosts[1]} {
		if err := hosts[i%3].AskToLead(t.Context(), h.name); err != nil {
			t.Fatal(err)
		}
		for l := range h.lives {
			if l.term.Err() == nil {
				break
			}
		}
	}
	stop()
	clients.Wait()
	t.Logf("%d requests", asked.Load())
	if count.Load() != asked.Load() {
		t.Errorf("%d requests, and %d were carried out", asked.Load(), count.Load())
	}
}

// TestStranger: hosts only talk to hosts whose keys are in the table.
func TestStranger(t *testing.T) {
	t.Parallel()
	a, _ := pair(t, nil)
	for name, config := range strangers(t) {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			for _, path := range []string{"/cluster/watch", "/"} {
				r := request(t, http.MethodGet, "https://"+a.Address()+path, http.NoBody)
				r.Header.Set("Jobhost-Client", "127.0.0.1:1")
				resp, err := transport.RoundTrip(r)
				if err == nil {
					_ = resp.Body.Close()
					t.Errorf("%s: %s", path, resp.Status)
				}
			}
		})
	}
}

// TestWrongLeader: a standby sends nothing to a host that does not have the key of the leader.
func TestWrongLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var came atomic.Bool
	wrong := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Store(true) }))
	wrong.EnableHTTP2 = true
	wrong.StartTLS()
	defer wrong.Close()
	a := w.join(t, "a", func(cfg *cluster.Config) { cfg.Advertise = wrong.Listener.Addr().String() })
	a.leads(t)
	b := w.join(t, "b", func(cfg *cluster.Config) { cfg.RequestWait = time.Second })
	if got := b.get(t, "/"); !strings.HasPrefix(got, "503 ") || came.Load() {
		t.Errorf("got %s; it came: %v", got, came.Load())
	}
}

// TestWrongAddress: a leader keeps leading although nothing listens at the address that it announces.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	a := w.join(t, "a", func(cfg *cluster.Config) { cfg.Advertise = l.Addr().String() })
	first := a.leads(t)
	b := w.join(t, "b", func(cfg *cluster.Config) { cfg.RequestWait = time.Second })
	if got := b.get(t, "/"); !strings.HasPrefix(got, "503 ") {
		t.Errorf("got %s", got)
	}
	if first.term.Err() != nil {
		t.Error("the leader was replaced")
	}
	a.stop()
	b.leads(t)
	if first.term.Err() == nil {
		t.Error("the term is not over")
	}
}
