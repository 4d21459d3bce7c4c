package netproxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// breaks reads a request and closes the connection.
func breaks(conn net.Conn) { asked(conn) }

// Which requests are resent, and how often.
func TestRetries(t *testing.T) {
	t.Parallel()
	key := http.Header{"Idempotency-Key": {"k"}}
	for _, tt := range []struct {
		name   string
		method string
		header http.Header
		host   http.Header
		fail   int64 // how many dials fail
		breaks int64 // how many connections after them break
		want   netproxy.Code
		dials  int64
	}{
		{"refused once", "POST", nil, nil, 1, 0, "", 2},
		{"refused three times", "POST", nil, nil, 3, 0, "", 4},
		{"refused always", "GET", nil, nil, 100, 0, netproxy.CodeConnection, 4},
		{"GET that breaks", "GET", nil, nil, 0, 3, "", 4},
		{"PUT that breaks", "PUT", nil, nil, 0, 1, "", 2},
		{"DELETE that breaks always", "DELETE", nil, nil, 0, 100, netproxy.CodeConnection, 4},
		{"POST that breaks", "POST", nil, nil, 0, 1, netproxy.CodeConnection, 1},
		{"PATCH that breaks", "PATCH", nil, nil, 0, 1, netproxy.CodeConnection, 1},
		{"POST with a key", "POST", key, nil, 0, 1, "", 2},
		{"POST with the host's key", "POST", nil, key, 0, 1, "", 2},
		{"POST refused, then broken", "POST", nil, nil, 1, 1, netproxy.CodeConnection, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				end := answers(func(w io.Writer, r *http.Request) bool {
					if r.Header.Get("X-Test-Body") != "body" {
						t.Errorf("the body is %q", r.Header.Get("X-Test-Body"))
					}
					return reply(w, 200, "", "end")
				})
				w := &wire{}
				w.fail = func(n int64) error {
					if n <= tt.fail {
						return errRefused
					}
					return nil
				}
				w.serve = func(n int64, conn net.Conn) {
					if n <= tt.fail+tt.breaks {
						breaks(conn)
						return
					}
					end(n, conn)
				}
				seen := &limits{}
				began := time.Now()
				_, err := call(t, w.client(t, netproxy.Config{Observer: seen}), netproxy.RequestSpec{
					Method: tt.method, URL: "http://a.example/", Header: tt.header, HostHeader: tt.host, Body: []byte("body"),
				})
				if tt.want == "" && err != nil || tt.want != "" && wantCode(t, err, netproxy.KindRequest, tt.want) == nil {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if n := w.dials.Load(); n != tt.dials {
					t.Errorf("%d connections, want %d", n, tt.dials)
				}
				// 100, 200 and 400 ms, ± half of it
				least, most := []time.Duration{0, 50, 150, 350}, []time.Duration{0, 150, 450, 1050}
				took, n := time.Since(began)/time.Millisecond, tt.dials-1
				if took < least[n] || took > most[n] {
					t.Errorf("it took %d ms", took)
				}
				if got := seen.ended[0].Retries; int64(got) != n {
					t.Errorf("the observer heard of %d retries, want %d", got, n)
				}
			})
		})
	}
}

// Nothing is retried that can't succeed, or has no time left.
func TestNoRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  netproxy.Config
		err  error
		code netproxy.Code
	}{
		{"no such name", netproxy.Config{}, &net.DNSError{IsNotFound: true}, netproxy.CodeDNS},
		{"none wanted", netproxy.Config{MaxRetries: new(0)}, errRefused, netproxy.CodeConnection},
		{"no time", netproxy.Config{Timeout: 40 * time.Millisecond}, errRefused, netproxy.CodeConnection},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wire{fail: func(int64) error { return tt.err }}
				_, err := call(t, w.client(t, tt.cfg), netproxy.RequestSpec{URL: "http://a.example/"})
				wantCode(t, err, netproxy.KindRequest, tt.code)
				if w.dials.Load() != 1 {
					t.Errorf("%d connections", w.dials.Load())
				}
			})
		})
	}
}

// Resolving and connecting have five seconds each, and a name server that fails
// may succeed the next time.
func TestWayToConnection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		dns  time.Duration
		err  error
		dial time.Duration
		code netproxy.Code
		took time.Duration
	}{
		{"slow name servers", 30 * time.Second, nil, 0, netproxy.CodeDNS, 5 * time.Second},
		{"no name servers", 0, &net.DNSError{Err: "refused", IsTemporary: true}, 0, netproxy.CodeDNS, 0},
		{"nobody answers", 0, nil, 30 * time.Second, netproxy.CodeTimeout, 5 * time.Second},
		{"both slow, but in time", 4 * time.Second, nil, 4 * time.Second, "", 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wait := func(ctx context.Context, d time.Duration) error {
					select {
					case <-time.After(d):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				w := &wire{serve: says(header + "Content-Length: 0\r\n\r\n")}
				cfg := netproxy.Config{Policy: allow(t, "", "http://*"), MaxRetries: new(0), Own: noAddrs}
				cfg.Resolver = names(func(ctx context.Context, host string) ([]netip.Addr, error) {
					if err := wait(ctx, tt.dns); err != nil {
						return nil, err
					}
					if tt.err != nil {
						return nil, tt.err
					}
					return public(ctx, host)
				})
				cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					if err := wait(ctx, tt.dial); err != nil {
						return nil, err
					}
					return w.dial(ctx, to)
				}
				began := time.Now()
				c := newClient(t, cfg)
				_, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/"})
				if tt.code == "" && err != nil || tt.code != "" && wantCode(t, err, netproxy.KindRequest, tt.code) == nil {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				c.Close()
				synctest.Wait()
			})
		})
	}
}

// A connection that was closed while idle is not a failure.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	w := &wire{serve: func(_ int64, conn net.Conn) { // answers once, and then hangs up at the next request
		in := bufio.NewReader(conn)
		if r, err := http.ReadRequest(in); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			reply(conn, 200, "", "end")
		}
		_, _ = http.ReadRequest(in)
	}}
	c := w.client(t, netproxy.Config{})
	for range 3 {
		if _, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/"}); err != nil {
			t.Fatal(err)
		}
	}
}

// A destination that fails is left alone for a while.
func TestDestinationBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := 500
		w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
			if r.Host != "a.example" {
				return reply(w, 200, "", "")
			}
			return reply(w, status, "", "")
		})}
		c := w.client(t, netproxy.Config{Destinations: netproxy.DestinationConfig{
			Breaker: jobhost.BreakerPolicy{Failures: 3, Timeout: time.Minute, Probes: 1},
		}})
		ask := func(host string) error {
			_, err := call(t, c, netproxy.RequestSpec{URL: "http://" + host + "/"})
			return err
		}
		for range 3 {
			if err := ask("a.example"); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, ask("a.example"), netproxy.KindRequest, netproxy.CodeBreakerOpen)
		if err := ask("b.example"); err != nil {
			t.Errorf("another destination: %v", err)
		}
		time.Sleep(time.Minute)
		status = 404 // the server is there
		for range 2 {
			if err := ask("a.example"); err != nil {
				t.Error(err)
			}
		}
		// Denials and cancelled requests say nothing about it.
		for range 5 {
			_, err := call(t, c, netproxy.RequestSpec{URL: "http://10.0.0.1/"})
			wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
		}
	})
}

// Requests to a destination don't exceed its rate, as long as there is time.
func TestDestinationRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool { return reply(w, 200, "", "") })}
		seen := &limits{}
		c := w.client(t, netproxy.Config{Observer: seen, Destinations: netproxy.DestinationConfig{Rate: jobhost.Rate{Count: 1, Per: time.Second}, Burst: 2}})
		began := time.Now()
		for _, want := range []time.Duration{0, 0, time.Second, 2 * time.Second} {
			if _, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/"}); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(began); at != want {
				t.Errorf("asked after %v, want %v", at, want)
			}
		}
		_, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/", Timeout: time.Second / 2})
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeRateLimited)
		if len(seen.names) != 1 || seen.names[0] != netproxy.LimitRate {
			t.Errorf("limits hit: %v", seen.names)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err = c.Call(ctx, newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"}))
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeCancelled)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the cause is gone: %v", err)
		}
	})
}
