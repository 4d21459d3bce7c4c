package guard

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// site is a server on loopback that counts its connections.
type site struct {
	*httptest.Server
	port  string
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
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.port = u.Port()
	return s
}

func (s *site) wantConns(t testing.TB, want int64) {
	t.Helper()
	if n := s.conns.Load(); n != want {
		t.Errorf("the server saw %d connections, want %d", n, want)
	}
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) }

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

func get(t testing.TB, transport http.RoundTripper, to string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func newTransport(t testing.TB, cfg Config) *Transport {
	transport := New(cfg)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func wantDenied(t testing.TB, err error) {
	t.Helper()
	if jobhost.CodeOf(err) != jobhost.CodeDenied {
		t.Errorf("got %v, want a denial", err)
	}
	if fault, message := Explain(err); err != nil && (fault != FaultDenied || strings.Contains(message, "special")) {
		t.Errorf("a denial is explained as %s: %s", fault, message)
	}
}

// resolver answers the questions for IPv4 addresses with the lists in turn, repeating the
// last one, and knows no IPv6 addresses.
func resolver(lists ...string) *net.Resolver {
	var asked atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe() // not a net.PacketConn, so the resolver speaks as over TCP
		go func() {
			defer there.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(there, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(there, query); err != nil {
					return
				}
				end := 12
				for query[end] != 0 {
					end += 1 + int(query[end])
				}
				question := query[12 : end+5]
				var addrs []string
				if question[len(question)-3] == 1 { // A
					addrs = strings.Fields(lists[min(int(asked.Add(1)), len(lists))-1])
				}
				reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, question...)
				for _, a := range addrs {
					reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
					reply = append(reply, netip.MustParseAddr(a).AsSlice()...)
				}
				if _, err := there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return here, nil
	}}
}

// The dialled address is judged after the name was resolved, for each connection.
func TestRebinding(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		hello(w, r)
	})
	at := "http://rebind.example:" + s.port
	for _, tt := range []struct {
		name, private string
		answers       []string
		want          []bool // whether each of three requests is allowed
	}{
		{"private", "", []string{"127.0.0.1"}, []bool{false, false, false}},
		{"allowed", "127.0.0.1", []string{"127.0.0.1"}, []bool{true, true, true}},
		{"rebound", "127.0.0.1", []string{"127.0.0.1", "127.0.0.2"}, []bool{true, false, false}},
		{"mixed", "127.0.0.1", []string{"10.0.0.1 169.254.169.254 127.0.0.1"}, []bool{true, true, true}},
		{"mixed, none allowed", "172.16.0.0/12", []string{"10.0.0.1 127.0.0.1"}, []bool{false, false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transport := newTransport(t, Config{Policy: allow(t, tt.private, at), Resolver: resolver(tt.answers...)})
			before, allowed := s.conns.Load(), int64(0)
			for _, want := range tt.want {
				body, err := get(t, transport, at+"/x")
				if !want {
					wantDenied(t, err)
					continue
				}
				allowed++
				if err != nil || body != "hello rebind.example:"+s.port {
					t.Errorf("got %q, %v", body, err)
				}
			}
			s.wantConns(t, before+allowed)
		})
	}
}

// A denial says the same for a name that no rule allows, and for one that
// resolves to a forbidden address.
func TestDenialsAreTheSame(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	at := "http://name.example:" + s.port
	byAddress := New(Config{Policy: allow(t, "", at), Resolver: resolver("127.0.0.1")})
	byRule := New(Config{Policy: allow(t, "", "https://other.example"), Resolver: resolver("127.0.0.1")})
	_, err1 := get(t, byAddress, at)
	_, err2 := get(t, byRule, at)
	wantDenied(t, err1)
	wantDenied(t, err2)
	_, said1 := Explain(err1)
	_, said2 := Explain(err2)
	if said1 != said2 || said1 != at+" may not be reached" {
		t.Errorf("denials differ: %q, %q", said1, said2)
	}
	s.wantConns(t, 0)
}

// Literal addresses in all spellings; the listener sees nothing.
func TestAddressesInURLs(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	transport := newTransport(t, Config{Policy: allow(t, "", "http://*:"+s.port, "http://localhost:"+s.port)})
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "localhost", "localhost.", "LOCALHOST"} {
		_, err := get(t, transport, "http://"+host+":"+s.port+"/")
		wantDenied(t, err)
	}
	for _, host := range []string{"2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::1%25lo]"} {
		if _, err := get(t, transport, "http://"+host+":"+s.port+"/"); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%s: %v", host, err)
		}
	}
	s.wantConns(t, 0)
}

// For a client that follows redirects, each hop is judged.
func TestRedirects(t *testing.T) {
	t.Parallel()
	inner := newSite(t, hello)
	outer := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+r.URL.Path, http.StatusFound)
	})
	transport := newTransport(t, Config{Policy: allow(t, "127.0.0.1", outer.URL, inner.URL+"/open/*")})
	client := &http.Client{Transport: transport}
	for path, want := range map[string]bool{"/open/x": true, "/closed": false} {
		resp, err := client.Get(outer.URL + path)
		if err == nil {
			resp.Body.Close()
		}
		if got := jobhost.CodeOf(err); want != (err == nil) || !want && got != jobhost.CodeDenied {
			t.Errorf("%s: %v", path, err)
		}
	}
	if resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", outer.URL+"/open/x", nil)); err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("the transport follows redirects itself: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

// A proxy from the environment is not used.
func TestNoProxy(t *testing.T) {
	proxy := newSite(t, hello)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	s := newSite(t, hello)
	at := "http://name.example:" + s.port
	transport := newTransport(t, Config{Policy: allow(t, "127.0.0.1", at), Resolver: resolver("127.0.0.1")})
	if body, err := get(t, transport, at); err != nil || body != "hello name.example:"+s.port {
		t.Errorf("got %q, %v", body, err)
	}
	proxy.wantConns(t, 0)
}

// The Host header is that of the URL, which is what was judged.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	transport := newTransport(t, Config{Policy: allow(t, "127.0.0.1", s.URL)})
	req := httptest.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	req.Host = "internal.example"
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello 127.0.0.1:"+s.port {
		t.Errorf("got %q", body)
	}
}

func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	mine := &net.IPNet{IP: net.ParseIP("8.8.8.8"), Mask: net.CIDRMask(32, 32)}
	tr := newTransport(t, Config{Own: func() ([]net.Addr, error) { return []net.Addr{mine}, nil }})
	if err := tr.dialer.control(t.Context(), "tcp4", "8.8.8.8:443", nil); err == nil {
		t.Error("an address of this machine is allowed")
	}
	if err := tr.dialer.control(t.Context(), "tcp4", "8.8.4.4:443", nil); err != nil {
		t.Error(err)
	}
	tr = newTransport(t, Config{Own: func() ([]net.Addr, error) { return nil, errors.New("no interfaces") }})
	if err := tr.dialer.control(t.Context(), "tcp4", "8.8.4.4:443", nil); err == nil {
		t.Error("an address is allowed that may be this machine's")
	}
	for _, address := range []string{"", "name:80", "[fe80::1%lo]:80"} {
		if err := tr.dialer.control(t.Context(), "tcp", address, nil); err == nil {
			t.Errorf("%q is allowed", address)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(secure.Close)

	plain := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/huge":
			w.Header().Set("X", strings.Repeat("x", DefaultHeaderBytes))
		case "/break":
			panic(http.ErrAbortHandler)
		}
	})
	closed := newSite(t, hello)
	closed.Close()
	unknown := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }}
	for _, tt := range []struct {
		name, url string
		resolver  *net.Resolver
		fault     Fault
		message   string
	}{
		{"certificate", secure.URL, nil, FaultTLS, "the certificate is not trusted: x509: certificate signed by unknown authority"},
		{"no TLS", "https://127.0.0.1:" + plain.port, nil, FaultTLS, "the answer is not TLS"},
		{"huge header", plain.URL + "/huge", nil, FaultTooLarge, "the header of the response is too large"},
		{"broken", plain.URL + "/break", nil, FaultConnection, "the connection broke before there was a response"},
		{"refused", closed.URL, nil, FaultConnection, "no connection: connection refused"},
		{"no such name", "http://nobody.example", resolver(""), FaultDNS, "the name has no address that may be reached"},
		{"no name server", "http://nobody.example", unknown, FaultDNS, "the name could not be resolved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			tr := newTransport(t, Config{Policy: allow(t, "127.0.0.0/8", u.Scheme+"://"+u.Host), Resolver: tt.resolver})
			_, err = get(t, tr, tt.url)
			if err == nil {
				t.Fatal("there was a response")
			}
			if fault, message := Explain(err); fault != tt.fault || message != tt.message {
				t.Errorf("got %s: %s (%v)", fault, message, err)
			}
		})
	}
	if fault, _ := Explain(context.DeadlineExceeded); fault != FaultTimeout {
		t.Errorf("got %s", fault)
	}
}

// A connection switched to another protocol would outlive its request.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
		close(closed)
	})
	_, err := get(t, New(Config{Policy: allow(t, "127.0.0.1", s.URL)}), s.URL)
	if fault, message := Explain(err); err == nil || fault != FaultConnection || !strings.Contains(message, "another protocol") {
		t.Errorf("got %v: %s, %s", err, fault, message)
	}
	<-closed
}
