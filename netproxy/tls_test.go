package netproxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// sign returns a certificate for a name, valid until a time; by = nil means self-signed.
func sign(t testing.TB, by *authority, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secureClient may reach name.example, which is this machine, over TLS.
func secureClient(t testing.TB, a *authority, port string, cfg netproxy.Config) *netproxy.Client {
	t.Helper()
	cfg.Policy = allow(t, "127.0.0.1", "https://name.example:"+port)
	cfg.Resolver = loopback
	cfg.RootCAs = a.pool
	return newClient(t, cfg)
}

// Servers that can't be trusted: row H32.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	later := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		with func(*tls.Config)
		code netproxy.Code // "" = a response
	}{
		{"good", sign(t, a, "name.example", later), nil, ""},
		{"asks for a client's certificate", sign(t, a, "name.example", later), func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }, ""},
		{"needs a client's certificate", sign(t, a, "name.example", later), func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, netproxy.CodeTLS},
		{"signed by itself", sign(t, nil, "name.example", later), nil, netproxy.CodeTLS},
		{"signed by another", sign(t, newAuthority(t), "name.example", later), nil, netproxy.CodeTLS},
		{"expired", sign(t, a, "name.example", time.Now().Add(-time.Hour)), nil, netproxy.CodeTLS},
		{"of another host", sign(t, a, "other.example", later), nil, netproxy.CodeTLS},
		{"TLS 1.1", sign(t, a, "name.example", later), func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, netproxy.CodeTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(http.HandlerFunc(hello))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.TLS = &tls.Config{Certificates: []tls.Certificate{tt.cert}}
			if tt.with != nil {
				tt.with(s.TLS)
			}
			s.StartTLS()
			t.Cleanup(s.Close)
			port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
			c := secureClient(t, a, port, netproxy.Config{})
			resp, err := call(t, c, netproxy.RequestSpec{URL: "https://name.example:" + port})
			if tt.code != "" {
				wantCode(t, err, netproxy.KindRequest, tt.code)
			} else if err != nil || string(resp.Body) != "hello name.example:"+port {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}

// A certificate of a megabyte is not read.
func TestHugeCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert := sign(t, a, "name.example", time.Now().Add(time.Hour))
	for range 1 << 20 / len(cert.Certificate[0]) {
		cert.Certificate = append(cert.Certificate, cert.Certificate[0])
	}
	s := newTLSSite(t, cert, func(conn *tls.Conn) { _ = conn.Handshake() })
	_, err := call(t, secureClient(t, a, s, netproxy.Config{MaxRetries: new(0)}), netproxy.RequestSpec{URL: "https://name.example:" + s})
	if err == nil {
		t.Fatal("there is a response")
	}
}

// newTLSSite serves each connection by a function, and returns the port.
func newTLSSite(t testing.TB, cert tls.Certificate, serve func(*tls.Conn)) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			secure := conn.(*tls.Conn)
			context.AfterFunc(over, func() { _ = secure.NetConn().Close() })
			all.Go(func() {
				defer conn.Close()
				serve(secure)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		end()
		all.Wait()
	})
	return l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':')+1:]
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, http1 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{Certificates: []tls.Certificate{sign(t, a, "name.example", time.Now().Add(time.Hour))}}
		s.StartTLS()
		t.Cleanup(s.Close)
		port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
		resp, err := call(t, secureClient(t, a, port, netproxy.Config{HTTP1: http1}), netproxy.RequestSpec{URL: "https://name.example:" + port})
		want := "HTTP/2.0"
		if http1 {
			want = "HTTP/1.1"
		}
		if err != nil || string(resp.Body) != want {
			t.Errorf("HTTP1 %t: got %+v, %v", http1, resp, err)
		}
	}
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	head = append(head, kind, flags)
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// Servers that use HTTP/2 to keep their client busy: row H33. What they may send
// per request is bounded, of whatever kind.
func TestHTTP2Floods(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert := sign(t, a, "name.example", time.Now().Add(time.Hour))
	settings := frame(4, 0, 0, "")
	for name, flooding := range map[string]struct{ begin, piece string }{
		"pings":           {settings, frame(6, 0, 0, "12345678")},
		"settings":        {settings, frame(4, 0, 0, "\x00\x03\x00\x00\x00\x64")},
		"window updates":  {settings, frame(8, 0, 0, "\x00\x00\x00\x01")},
		"priorities":      {settings, frame(2, 0, 1, "\x00\x00\x00\x00\x01")},
		"unknown frames":  {settings, frame(99, 0, 0, strings.Repeat("x", 1000))},
		"continuations":   {settings + frame(1, 0, 1, "\x88"), frame(9, 0, 1, "\x00\x01x\x01y")},
		"empty data":      {settings + frame(1, 4, 1, "\x88"), frame(0, 0, 1, "")},
		"padding":         {settings + frame(1, 4, 1, "\x88"), frame(0, 8, 1, "\xff"+strings.Repeat("\x00", 255))},
		"data":            {settings + frame(1, 4, 1, "\x88"), frame(0, 0, 1, strings.Repeat("x", 1000))},
		"pushes":          {settings, frame(5, 4, 1, "\x00\x00\x00\x02\x88")},
		"resets":          {settings, frame(3, 0, 1, "\x00\x00\x00\x08")},
		"going away":      {settings, frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")},
		"interim headers": {settings, frame(1, 4, 1, "\x08\x03103")},
		"no frames":       {"", "HTTP/1.1 200 OK\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conns atomic.Int64
			port := newTLSSite(t, cert, func(conn *tls.Conn) {
				conns.Add(1)
				if err := conn.Handshake(); err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				flood(conn, flooding.begin, flooding.piece)
			})
			seen := &limits{}
			c := secureClient(t, a, port, netproxy.Config{Observer: seen, MaxRetries: new(0), Timeout: 2 * time.Second})
			began := time.Now()
			resp, err := call(t, c, netproxy.RequestSpec{Method: "POST", URL: "https://name.example:" + port})
			if err == nil {
				t.Fatalf("got %d and %d bytes", resp.Status, len(resp.Body))
			}
			if took := time.Since(began); took > 10*time.Second || conns.Load() > 2*16 {
				t.Errorf("it took %v and %d connections", took, conns.Load())
			}
		})
	}
}

// loopback resolves every name to this machine.
var loopback = fixed("127.0.0.1")

func fixed(text string) names {
	return func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(text)}, nil
	}
}
