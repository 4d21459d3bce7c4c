package api_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
)

// ask sends a GET over a connection of its own and returns the status of the answer, of which
// no more is read.
func (f *fixture) ask(path string, header string) *rawConn {
	f.Helper()
	conn := f.dial()
	if err := conn.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		f.Fatal(err)
	}
	conn.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n")
	return conn
}

// statusLine reads no more of an answer than its status.
func (c *rawConn) statusLine() (status int) {
	c.fixture.Helper()
	if _, err := fmt.Fscanf(c.Conn, "HTTP/1.1 %d", &status); err != nil {
		c.Fatal(err)
	}
	return status
}

const withToken = "Authorization: Bearer " + token + "\r\n"

// TestAnonymousCallers lets callers without the token take all that they can get: one with
// the token submits, waits, reads and follows events meanwhile.
func TestAnonymousCallers(t *testing.T) {
	t.Parallel()
	const large = 6 << 20 // more than sockets buffer
	f := setup(t, options{
		host: func(c *host.Config) { c.MaxPayload = large },
		api: func(c *api.Config) {
			c.OpenReads = true
			c.Limits = api.Limits{
				Streams: 1, Waits: 1, Answers: 2 << 20,
				AnonymousStreams: 2, AnonymousWaits: 2, AnonymousAnswers: 2 << 20,
			}
		},
	})
	held := f.submit(jobhost.Spec{Worker: "test", Delay: time.Hour, Payload: make([]byte, large)})
	for range 2 {
		if got := f.ask("/v1/events", "").statusLine(); got != 200 {
			t.Fatalf("a stream without the token: %d", got)
		}
		f.ask("/v1/jobs/"+held+"?wait=2m", "")
	}
	f.want(f.do("GET", "/v1/events", "", "Authorization", ""), 429, "2 event streams")
	for f.do("GET", "/v1/jobs/"+held+"?wait=1ms", "", "Authorization", "").status != 429 {
		if t.Context().Err() != nil {
			t.Fatal("waits without the token are not bounded")
		}
		f.ask("/v1/jobs/"+held+"?wait=2m", "") // this short wait may have kept one of those above out
	}
	for range 20 {
		f.ask("/v1/jobs/"+held+"/payload", "")
	}

	f.follow("")
	f.want(f.do("GET", "/v1/events", ""), 429, "1 event streams")
	f.want(f.do("POST", "/v1/jobs?wait=1m", `{"worker":"test","payload":"hello"}`), 201, `"result":"hello"`)
	f.want(f.do("GET", "/v1/jobs/"+held+"?wait=1ms", ""), 202)
	if got := f.do("GET", "/v1/jobs/"+held+"/payload", ""); len(got.body) != large {
		t.Errorf("got %d bytes", len(got.body))
	}
}

// TestReadersThatStop checks that clients that don't read are cut off soon when others want
// to read, and at once get no more than there is room for.
func TestReadersThatStop(t *testing.T) {
	t.Parallel()
	const large = 6 << 20
	f := setup(t, options{
		host: func(c *host.Config) { c.MaxPayload = large },
		api: func(c *api.Config) {
			c.Limits = api.Limits{Answers: 1 << 20, Stall: 10 * time.Second}
		},
	})
	id := f.submit(jobhost.Spec{Worker: "test", Payload: make([]byte, large)})
	var stopped []*rawConn
	for range 4 { // a third of the room each
		stopped = append(stopped, f.ask("/v1/jobs/"+id+"/payload", withToken))
	}
	for _, conn := range stopped {
		if got := conn.statusLine(); got != 200 {
			t.Errorf("got status %d", got)
		}
	}
	if got := f.do("GET", "/v1/jobs/"+id+"/payload", ""); len(got.body) != large {
		t.Errorf("one who reads got %d bytes", len(got.body))
	}
}

// TestAnonymousConnections checks that connections without the token make room for new ones,
// and that one over which the token came is never closed for them.
func TestAnonymousConnections(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{Conns: 8}, api: func(c *api.Config) { c.OpenReads = true }})
	const request = "GET /v1/workers HTTP/1.1\r\nHost: localhost\r\n"
	trusted, waiting := f.ask("/v1/workers", withToken), f.ask("/v1/events", "")
	for _, conn := range []*rawConn{trusted, waiting} {
		if got := conn.statusLine(); got != 200 {
			t.Fatalf("got status %d", got)
		}
	}
	var halfOpen []*rawConn
	for range 100 {
		conn := f.dial()
		conn.send(request)
		halfOpen = append(halfOpen, conn)
	}
	f.want(f.do("GET", "/v1/workers", ""), 200)
	if got := halfOpen[0].status(); got != 0 {
		t.Errorf("the first connection without a whole request was answered %d, want its end", got)
	}
	trusted.send(request + withToken + "\r\n")
	f.submit(jobhost.Spec{Worker: "test"})
	for name, conn := range map[string]*rawConn{"with the token": trusted, "with a stream": waiting} {
		if _, err := io.CopyN(io.Discard, conn.Conn, 300); err != nil {
			t.Errorf("the connection %s was closed: %v", name, err)
		}
	}
}
