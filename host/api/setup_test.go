package api_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/host/hosttest"
)

const token = "0123456789abcdefghijklmnopqrstuv"

// fixture is an API that is served over TCP until the test ends.
type fixture struct {
	testing.TB
	host *hosttest.Host
	api  *api.API
	addr string
	http *http.Client
}

// options change what setup makes.
type options struct {
	host  func(*host.Config)
	api   func(*api.Config)
	serve api.ServeConfig
}

func setup(t testing.TB, o options) *fixture {
	t.Helper()
	if o.host == nil {
		o.host = func(*host.Config) {}
	}
	f := &fixture{TB: t, host: hosttest.Open(t, o.host)}
	cfg := api.Config{Server: f.host.Server, Token: token, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if o.api != nil {
		o.api(&cfg)
	}
	var err error
	if f.api, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	f.http = &http.Client{Transport: transport}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := f.api.Serve(ctx, listener, o.serve); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		group.Wait()
	})
	return f
}

// serverOf is the server of a configuration, which is there from the start.
func serverOf(c *api.Config) jobhost.Server {
	server, _ := c.Server()
	return server
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request with the token. header has names and values in turn; an
// empty value takes a header away.
func (f *fixture) do(method, path, body string, header ...string) reply {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.addr+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", wire.JSON)
	}
	for i := 0; i < len(header); i += 2 {
		switch name, value := header[i], header[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	resp, err := f.http.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// want checks an answer's status and that it holds the texts.
func (f *fixture) want(got reply, status int, texts ...string) {
	f.Helper()
	if got.status != status {
		f.Errorf("got status %d, want %d: %s", got.status, status, got.body)
	}
	if kind := got.header.Get("Content-Type"); status >= 400 && kind != wire.Trouble {
		f.Errorf("got type %q, want a problem", kind)
	}
	for _, text := range texts {
		if !strings.Contains(got.body, text) {
			f.Errorf("got %s, want it to have %q", got.body, text)
		}
	}
}

func (f *fixture) submit(spec jobhost.Spec) string {
	f.Helper()
	receipt, err := f.host.Submit(f.Context(), spec)
	if err != nil {
		f.Fatal(err)
	}
	return receipt.ID
}

// finish submits a job and waits for its end.
func (f *fixture) finish(spec jobhost.Spec) {
	f.Helper()
	if _, err := f.host.Wait(f.Context(), f.submit(spec)); err != nil {
		f.Fatal(err)
	}
}

// reach waits until a job has a state.
func (f *fixture) reach(id string, state jobhost.State) {
	f.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		job, err := f.host.Job(f.Context(), id)
		if err != nil {
			f.Fatal(err)
		}
		if job.State == state {
			return
		}
		if job.State.Ended() {
			f.Fatalf("job %s is %s, want %s", id, job.State, state)
		}
	}
}

// syncBuffer is a buffer that many goroutines write to.
type syncBuffer struct {
	mu   sync.Mutex // protects text
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
