package netproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/netproxy"
)

// names resolves names by a function.
type names func(ctx context.Context, host string) ([]netip.Addr, error)

func (f names) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return f(ctx, host)
}

// public resolves every name to the same public address.
func public(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

// noAddrs returns the addresses of a machine that has none.
func noAddrs() ([]net.Addr, error) { return nil, nil }

// wire is a network of pipes: each connection is served by a function, until it
// returns. It runs on the clock of the test's bubble.
type wire struct {
	dials atomic.Int64
	serve func(n int64, conn net.Conn) // n counts connections, from 1
	fail  func(n int64) error          // for dials; nil = never
	all   sync.WaitGroup
}

func (w *wire) dial(context.Context, netip.AddrPort) (net.Conn, error) {
	n := w.dials.Add(1)
	if w.fail != nil {
		if err := w.fail(n); err != nil {
			return nil, err
		}
	}
	here, there := net.Pipe()
	w.all.Go(func() {
		defer there.Close()
		w.serve(n, there)
	})
	return here, nil
}

// client returns a client that can reach this network only, and all of it.
func (w *wire) client(t testing.TB, cfg netproxy.Config) *netproxy.Client {
	t.Helper()
	t.Cleanup(w.all.Wait) // after the client is closed
	cfg.Policy = allow(t, "", "http://*", "http://*:8080", "https://*")
	cfg.Dial, cfg.Resolver, cfg.Own = w.dial, names(public), noAddrs
	return newClient(t, cfg)
}

// answers serves requests with a function that writes the response, as bytes, and
// closes the connection by returning false.
func answers(answer func(w io.Writer, r *http.Request) bool) func(int64, net.Conn) {
	return func(_ int64, conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Header.Set("X-Test-Body", string(body))
			if !answer(conn, r) {
				return
			}
		}
	}
}

// says answers all requests with the same bytes, and closes the connection.
func says(text string) func(int64, net.Conn) {
	return answers(func(w io.Writer, _ *http.Request) bool {
		_, _ = io.WriteString(w, text)
		return false
	})
}

// reply writes a whole response.
func reply(w io.Writer, status int, header, body string) bool {
	_, err := fmt.Fprintf(w, "HTTP/1.1 %d x\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), header, body)
	return err == nil
}

// asked returns when a request has been read.
func asked(conn net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}
