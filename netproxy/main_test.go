package netproxy_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// No test may leave a goroutine behind. Connections flooded by a server end once
// everything it sent was read, which takes a while on a busy machine.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs servers that misbehave
	code := m.Run()
	leaked := goleak.Find()
	for range 50 {
		if leaked == nil {
			break
		}
		leaked = goleak.Find() // takes up to half a second
	}
	if leaked != nil && code == 0 {
		_, _ = os.Stderr.WriteString(leaked.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// site is a server on loopback that counts its connections.
type site struct {
	*httptest.Server
	conns atomic.Int64
}

func newSite(t testing.TB, serve http.HandlerFunc) *site {
	t.Helper()
	s := &site{Server: httptest.NewUnstartedServer(serve)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *site) port() string { return s.URL[strings.LastIndexByte(s.URL, ':')+1:] }

func (s *site) wantConns(t testing.TB, want int64) {
	t.Helper()
	if n := s.conns.Load(); n != want {
		t.Errorf("the server saw %d connections, want %d", n, want)
	}
}

// allow returns a policy with rules, and with private ranges separated by spaces.
func allow(t testing.TB, private string, rules ...string) policy.Policy {
	t.Helper()
	var p policy.Policy
	for _, text := range rules {
		r, err := policy.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Allow = append(p.Allow, r)
	}
	for text := range strings.FieldsSeq(private) {
		prefix, err := policy.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		p.AllowPrivate = append(p.AllowPrivate, prefix)
	}
	return p
}

func newClient(t testing.TB, cfg netproxy.Config) *netproxy.Client {
	t.Helper()
	c, err := netproxy.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// localClient may reach everything on this machine's loopback.
func localClient(t testing.TB, cfg netproxy.Config, sites ...*site) *netproxy.Client {
	t.Helper()
	var rules []string
	for _, s := range sites {
		rules = append(rules, s.URL)
	}
	cfg.Policy = allow(t, "127.0.0.1", rules...)
	return newClient(t, cfg)
}

func newRequest(t testing.TB, spec netproxy.RequestSpec) *netproxy.Request {
	t.Helper()
	r, err := netproxy.NewRequest(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func call(t testing.TB, c *netproxy.Client, spec netproxy.RequestSpec) (*netproxy.Response, error) {
	t.Helper()
	return c.Call(context.Background(), newRequest(t, spec))
}

func mustParse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
