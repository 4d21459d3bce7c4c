package api_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/api"
)

// rawConn speaks HTTP as badly as it likes.
type rawConn struct {
	*fixture
	net.Conn
	reader *bufio.Reader
}

func (f *fixture) dial() *rawConn {
	f.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		f.Fatal(err)
	}
	return &rawConn{f, conn, bufio.NewReader(conn)}
}

func (c *rawConn) send(text string) {
	c.fixture.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.Fatal(err)
	}
}

// status reads an answer and returns its status; 0 = the connection was closed.
func (c *rawConn) status() int {
	c.fixture.Helper()
	resp, err := http.ReadResponse(c.reader, nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatal("no answer came, and no end")
	}
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestSmuggling sends requests of which two servers in a row could disagree
// where they end (A20). Each must be refused, and nothing after it may be
// taken for a request.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	const hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	post := "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n"
	tests := []struct {
		name, request string
		statuses      []int
	}{
		{"two lengths", post + "Host: localhost\r\nContent-Length: 17\r\nContent-Length: 2\r\n\r\n", []int{400}},
		{"length list", post + "Host: localhost\r\nContent-Length: 17, 17\r\n\r\n", []int{400}},
		{"length with sign", post + "Host: localhost\r\nContent-Length: +4\r\n\r\n", []int{400}},
		{"negative length", post + "Host: localhost\r\nContent-Length: -1\r\n\r\n", []int{400}},
		{"length in hex", post + "Host: localhost\r\nContent-Length: 0x10\r\n\r\n", []int{400}},
		{"unknown coding", post + "Host: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n", []int{400, 501}},
		{"coding list", post + "Host: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n", []int{400, 501}},
		{"two codings", post + "Host: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", []int{400, 501}},
		{"space before colon", post + "Host: localhost\r\nContent-Length : 17\r\n\r\n", []int{400}},
		{"space before name", post + "Host: localhost\r\n Content-Length: 17\r\n\r\n", []int{400}},
		{"two hosts", post + "Host: localhost\r\nHost: evil.example.com\r\n\r\n", []int{400}},
		{"no host", post + "Content-Length: 0\r\n\r\n", []int{400}},
		{"NUL in a header", post + "Host: localhost\r\nX-A: a\x00b\r\n\r\n", []int{400}},
		{"NUL in a name", post + "Host: localhost\r\nX\x00A: b\r\n\r\n", []int{400}},
		{"bare CR", post + "Host: localhost\r\nX-A: a\rContent-Length: 9\r\n\r\n", []int{400}},
		{"bad chunk", post + "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", []int{400}},
		{"huge chunk", post + "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", []int{400}},
		{"two spaces in the first line", "GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{400}},
		{"no version", "GET /healthz\r\nHost: localhost\r\n\r\n", []int{400}},
		{"version 3", "GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", []int{400, 505}},
		{"control character in the path", "GET /v1/\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{400}},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 505, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := f.dial()
			conn.send(test.request + hidden)
			got, ok := conn.status(), false
			for _, status := range test.statuses {
				ok = ok || got == status
			}
			if !ok {
				t.Errorf("got status %d, want one of %v", got, test.statuses)
			}
			if next := conn.status(); next != 0 {
				t.Errorf("what came after it was answered with %d", next)
			}
		})
	}
}

// TestBothLengths sends a length and chunks: the chunks count, as RFC 9112
// has it, the connection ends, and nothing is taken for a second request.
func TestBothLengths(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	conn := f.dial()
	conn.send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"11\r\n{\"worker\":\"test\"}\r\n0\r\n\r\n")
	if got := conn.status(); got != 201 && got != 400 {
		t.Errorf("got status %d", got)
	}
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := conn.reader.ReadByte(); err == nil {
		t.Error("there was a second answer")
	}
}

// TestTolerated sends what net/http takes without a word to its handlers although another server
// could read it in another way (A21). Nothing here can refuse it, so docs/operations.md says what
// a proxy must do; these are the facts that it names.
func TestTolerated(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	const get = " HTTP/1.1\r\n" + withToken
	tests := []struct {
		name, request string
		status        int
	}{
		{"both lengths: the chunks count", "POST /v1/jobs" + get + "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n11\r\n{\"worker\":\"test\"}\r\n0\r\n\r\n", 201},
		{"a line that goes on", "GET /v1/workers" + get + "Host: localhost\r\nX-A: a\r\n b\r\n\r\n", 200},
		{"a length in two lines is one", "GET /v1/workers" + get + "Host: localhost\r\nContent-Length:\r\n 0\r\n\r\n", 200},
		{"a whole URL: its name counts", "GET http://localhost/v1/workers" + get + "Host: evil.example.com\r\n\r\n", 200},
		{"and is checked", "GET http://evil.example.com/v1/workers" + get + "Host: localhost\r\n\r\n", 421},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := f.dial()
			conn.send(test.request)
			if got := conn.status(); got != test.status {
				t.Errorf("got status %d, want %d", got, test.status)
			}
		})
	}
}

func TestLargeHeader(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	conn := f.dial()
	go func() { // the server stops reading long before the end
		_, _ = io.WriteString(conn.Conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "+strings.Repeat("a", 2<<20)+"\r\n\r\n")
	}()
	if got := conn.status(); got != 431 {
		t.Errorf("got status %d, want 431", got)
	}
}

// TestSlowHeaders sends headers slower than is allowed (A18).
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{ReadHeaderTimeout: 100 * time.Millisecond}})
	conn := f.dial()
	conn.send("GET /healthz HTTP/1.1\r\nHost: local")
	if got := conn.status(); got != 0 && got != 408 {
		t.Errorf("got status %d, want the end of the connection", got)
	}
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{RequestTimeout: 100 * time.Millisecond}})
	conn := f.dial()
	conn.send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if got := conn.status(); got != 0 && got != 400 {
		t.Errorf("got status %d, want the end of the connection", got)
	}
}

// TestConnectionsAreBounded checks that connections beyond the limit wait for
// others to end, and are served then.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{Conns: 2}})
	const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	first, second, third := f.dial(), f.dial(), f.dial()
	for _, conn := range []*rawConn{first, second} {
		conn.send(request)
		if got := conn.status(); got != 200 {
			t.Fatalf("got status %d", got)
		}
	}
	third.send(request)
	_ = third.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := third.reader.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the third connection was served: %v", err)
	}
	_ = third.SetDeadline(time.Now().Add(20 * time.Second))
	first.Close()
	if got := third.status(); got != 200 {
		t.Errorf("got status %d after a connection ended", got)
	}
}
