package netproxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/netproxy"
)

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) }

// resolvers are the two that Go has; the second one is libc's if cgo is enabled.
func resolvers() map[string]*net.Resolver {
	return map[string]*net.Resolver{"go": {PreferGo: true}, "system": {PreferGo: false}}
}

// Addresses that are never reached, however they are written, even though a rule
// allows every host: rows H1 to H9, H11, H13 and H17. The decoy sees nothing.
func TestAddresses(t *testing.T) {
	t.Parallel()
	decoy := newSite(t, hello)
	for name, resolver := range resolvers() {
		c := newClient(t, netproxy.Config{Policy: allow(t, "", "http://*:"+decoy.port(), "http://*", "http://localhost", "http://localhost:"+decoy.port()), Resolver: resolver, MaxRetries: new(0)})
		for _, host := range []string{
			"127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "0.0.0.0", "0.1.2.3", "[::]", "[::1]",
			"[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "100.100.100.200",
			"168.63.129.16", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "localhost.", "LOCALHOST",
		} {
			for _, port := range []string{":" + decoy.port(), ""} {
				_, err := call(t, c, netproxy.RequestSpec{URL: "http://" + host + port + "/"})
				e := wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
				if !strings.HasSuffix(e.Message, " may not be reached") || strings.Contains(e.Message, "127.0.0.1") && !strings.Contains(host, "127.0.0.1") && !strings.Contains(host, "7f00:1") {
					t.Errorf("%s, %s: %s", name, host, e.Message)
				}
			}
		}
	}
	decoy.wantConns(t, 0)
}

// What names resolve to is judged, again for each request: row H20.
func TestNames(t *testing.T) {
	t.Parallel()
	decoy := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		hello(w, r)
	})
	addrs := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	many := make([]netip.Addr, 1000)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	for _, tt := range []struct {
		name, private string
		answers       [][]netip.Addr // one after the other
		allowed       []bool
	}{
		{"metadata by name", "", [][]netip.Addr{addrs("169.254.169.254")}, []bool{false}},
		{"metadata by name, range allowed", "169.254.0.0/16 127.0.0.1", [][]netip.Addr{addrs("169.254.169.254")}, []bool{false}},
		{"rebound", "127.0.0.1", [][]netip.Addr{addrs("127.0.0.1"), addrs("127.0.0.2"), addrs("::1")}, []bool{true, false, false}},
		{"public, then loopback", "", [][]netip.Addr{addrs("127.0.0.1"), addrs("127.0.0.1", "::ffff:127.0.0.1")}, []bool{false, false}},
		{"mixed", "127.0.0.1", [][]netip.Addr{addrs("10.0.0.1", "fd00::1", "127.0.0.1")}, []bool{true}},
		{"a thousand", "", [][]netip.Addr{many}, []bool{false}},
		{"with a zone", "fe80::/10", [][]netip.Addr{addrs("fe80::1%lo")}, []bool{false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, want, n := decoy.conns.Load(), int64(0), 0
			c := newClient(t, netproxy.Config{
				Policy: allow(t, tt.private, "http://name.example:"+decoy.port()), MaxRetries: new(0),
				Resolver: names(func(context.Context, string) ([]netip.Addr, error) {
					n++
					return tt.answers[min(n, len(tt.answers))-1], nil
				}),
			})
			for _, allowed := range tt.allowed {
				_, err := call(t, c, netproxy.RequestSpec{URL: "http://name.example:" + decoy.port()})
				if allowed {
					want++
					if err != nil {
						t.Error(err)
					}
					continue
				}
				wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
			}
			decoy.wantConns(t, before+want)
		})
	}
}

// Ports, schemes and methods that no rule names: rows H18 and H26.
func TestRules(t *testing.T) {
	t.Parallel()
	decoy := newSite(t, hello)
	c := newClient(t, netproxy.Config{Policy: allow(t, "127.0.0.1", "GET http://a.example", "https://b.example/v1/*"), Resolver: names(func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})})
	for _, tt := range []struct{ method, url string }{
		{"GET", "http://a.example:" + decoy.port()},
		{"GET", "http://a.example:22/"},
		{"GET", "http://a.example:25/"},
		{"GET", "http://a.example:6379/"},
		{"POST", "http://a.example/"},
		{"GET", "https://a.example/"},
		{"GET", "http://b.example/v1/x"},
		{"GET", "https://b.example/v2"},
		{"GET", "https://b.example/v1"},
		{"GET", "https://a.example.evil.example/"},
	} {
		_, err := call(t, c, netproxy.RequestSpec{Method: tt.method, URL: tt.url})
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
	}
	decoy.wantConns(t, 0)
}

// A denial says the same whether the name is in no rule, resolves to a private
// address with a listener, or to one without: row H37.
func TestDenialsAreTheSame(t *testing.T) {
	t.Parallel()
	decoy := newSite(t, hello)
	closed := newSite(t, hello)
	closed.Close()
	at := "http://name.example:" + decoy.port()
	said := map[string]int{}
	for _, tt := range []struct {
		rule, addr string
	}{
		{"http://other.example", "8.8.8.8"},
		{at, "127.0.0.1"},
		{at, "10.255.255.1"},
		{at, "169.254.169.254"},
		{at, "127.9.9.9"},
	} {
		c := newClient(t, netproxy.Config{Policy: allow(t, "", tt.rule), Resolver: names(func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(tt.addr)}, nil
		})})
		_, err := call(t, c, netproxy.RequestSpec{ID: "id", URL: at})
		e := wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
		e.Duration = 0
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		said[string(text)]++
	}
	if len(said) != 1 {
		t.Errorf("denials differ: %v", said)
	}
	decoy.wantConns(t, 0)
}

// Names matched by a wildcard reveal nothing about the network behind the host: one
// that resolves to a forbidden address looks like one that doesn't exist.
func TestNamesBelowAnAsterisk(t *testing.T) {
	t.Parallel()
	said := map[string]int{}
	for _, addr := range []string{"", "10.0.0.1", "127.0.0.1", "169.254.169.254"} {
		c := newClient(t, netproxy.Config{
			Policy: allow(t, "", "https://*.corp.example"), MaxRetries: new(0),
			Resolver: names(func(context.Context, string) ([]netip.Addr, error) {
				if addr == "" {
					return nil, &net.DNSError{IsNotFound: true}
				}
				return []netip.Addr{netip.MustParseAddr(addr)}, nil
			}),
		})
		_, err := call(t, c, netproxy.RequestSpec{URL: "https://name.corp.example"})
		e := wantCode(t, err, netproxy.KindRequest, netproxy.CodeDNS)
		e.Duration, e.RequestID = 0, ""
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		said[string(text)]++
	}
	if len(said) != 1 {
		t.Errorf("the errors differ: %v", said)
	}
}

// The environment's proxy is not used, a configured one is, for everything: row H27.
func TestProxies(t *testing.T) {
	env := newSite(t, hello)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, env.URL)
	}
	var asked []string
	proxy := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String()+r.Host)
		hello(w, r)
	})
	s := newSite(t, hello)
	if _, err := call(t, localClient(t, netproxy.Config{}, s), netproxy.RequestSpec{URL: s.URL}); err != nil {
		t.Error(err)
	}
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, netproxy.Config{Policy: allow(t, "", "http://a.example", "http://*:"+s.port()), Proxy: at})
	resp, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/x"})
	if err != nil || string(resp.Body) != "hello a.example" {
		t.Errorf("got %+v, %v", resp, err)
	}
	for _, denied := range []string{"http://b.example/", s.URL} {
		_, err := call(t, c, netproxy.RequestSpec{URL: denied})
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
	}
	if len(asked) != 1 || asked[0] != "GET http://a.example/xa.example" {
		t.Errorf("the proxy was asked %v", asked)
	}
	env.wantConns(t, 0)
	s.wantConns(t, 1)
}

// This machine's own addresses are denied unless they are allowed, and the
// host's control addresses always are: row H38.
func TestOwnListeners(t *testing.T) {
	t.Parallel()
	mine := &net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(32, 32)}
	control := newSite(t, hello)
	other := newSite(t, hello)
	for _, tt := range []struct {
		name, private, forbidden, addr, port string
		allowed                              bool
	}{
		{"own address by a public name", "", "", "8.8.4.4", "80", false},
		{"own, allowed", "8.8.4.4", "", "8.8.4.4", "80", true},
		{"not own", "", "", "8.8.8.8", "80", true},
		{"loopback, allowed", "127.0.0.0/8", "", "127.0.0.1", other.port(), true},
		{"control, allowed", "127.0.0.0/8", "127.0.0.1:" + control.port(), "127.0.0.1", control.port(), false},
		{"beside it", "127.0.0.0/8", "127.0.0.1:" + control.port(), "127.0.0.1", other.port(), true},
		{"control on all addresses, by loopback", "127.0.0.0/8", "0.0.0.0:" + control.port(), "127.0.0.9", control.port(), false},
		{"by IPv6", "127.0.0.0/8", "[::]:" + control.port(), "127.0.0.1", control.port(), false},
		{"by the machine's address", "8.8.4.4", "[::]:80", "8.8.4.4", "80", false},
		{"the same port elsewhere", "", "[::]:80", "8.8.8.8", "80", true},
		{"mapped", "127.0.0.0/8", "127.0.0.1:" + control.port(), "::ffff:127.0.0.1", control.port(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &wire{serve: says(header + "Content-Length: 0\r\n\r\n")}
			cfg := netproxy.Config{
				Policy: allow(t, tt.private, "http://name.example:"+tt.port), MaxRetries: new(0), Dial: w.dial,
				Own: func() ([]net.Addr, error) { return []net.Addr{mine}, nil },
				Resolver: names(func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(tt.addr)}, nil
				}),
			}
			if tt.forbidden != "" {
				cfg.Forbidden = func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(tt.forbidden)} }
			}
			_, err := call(t, newClient(t, cfg), netproxy.RequestSpec{URL: "http://name.example:" + tt.port})
			if tt.allowed && err != nil || !tt.allowed && wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied) == nil {
				t.Errorf("got %v", err)
			}
			if got := w.dials.Load() > 0; got != tt.allowed {
				t.Errorf("dialled: %t", got)
			}
		})
	}
}

// What operators are shown, and only they.
func TestCheck(t *testing.T) {
	t.Parallel()
	c := newClient(t, netproxy.Config{
		Policy: allow(t, "", "https://api.example.com/v1/*"),
		Resolver: names(func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "nobody.example" {
				return nil, &net.DNSError{Name: host, IsNotFound: true}
			}
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")}, nil
		}),
	})
	v, err := c.Check(t.Context(), "GET", "https://API.example.com/v1/x")
	if err != nil || !v.Allowed || v.Rule != "https://api.example.com/v1/*" || len(v.Addresses) != 2 || v.Addresses[1].Why != "10.0.0.1 is special (private) and not in allow_private" {
		t.Errorf("got %+v, %v", v, err)
	}
	if v, err = c.Check(t.Context(), "GET", "https://nobody.example/"); err == nil || v.Allowed || v.Nearest == "" || len(v.Differs) != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
	if _, err = c.Check(t.Context(), "GET", "nonsense"); err == nil {
		t.Error("nonsense is checked")
	}
}
