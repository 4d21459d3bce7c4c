package webhook

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// No test may leave a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a server on loopback that counts its connections.
type receiver struct {
	*httptest.Server
	conns atomic.Int64
}

func receive(t testing.TB, serve http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{Server: httptest.NewUnstartedServer(serve)}
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.conns.Add(1)
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// settings allow everything on loopback.
func settings(t testing.TB, urls ...string) *Settings {
	t.Helper()
	s := DefaultSettings()
	s.Keys = []Key{key(t, exampleKey)}
	s.Policy.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, u := range urls {
		rule, err := policy.ParseRule(u)
		if err != nil {
			t.Fatal(err)
		}
		s.Policy.Allow = append(s.Policy.Allow, rule)
	}
	return &s
}

// worker is an instance of the worker of deliveries.
func worker(t testing.TB, s *Settings) runtime.Instance {
	t.Helper()
	plugin := s.Open(nil)
	t.Cleanup(func() {
		if err := plugin.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	instance, err := plugin.Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

// attempt runs an attempt to deliver a body, with a minute for it if there is
// no other time.
func attempt(t testing.TB, w runtime.Instance, url string, within time.Duration) jobhost.Outcome {
	t.Helper()
	payload, err := json.Marshal(delivery{url, json.RawMessage(`{"type":"job.ended"}`)})
	if err != nil {
		t.Fatal(err)
	}
	at := &hostcall.Attempt{
		Job: "id-of-the-delivery", Input: payload, Deadline: time.Now().Add(within),
		Limits: hostcall.Limits{OutputBytes: 1 << 20, LogBytes: 1 << 10, LineBytes: 1 << 10},
	}
	return w.Run(t.Context(), at).Outcome
}

// drain reads a request's body, so that connections are kept.
func drain(t testing.TB, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}
