package cluster_test

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

	"github.com/jobhost/jobhost/host/cluster"
)

// raw sends a request to a host as it stands there, and returns the status and the body of the answer.
func raw(t *testing.T, h *host, request string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestForwardOddRequests: what a client may send to the leader it may send to a standby. None of it is taken for a leader that
// is lost: that would cost the client its patience, and the leader a connection for each try.
func TestForwardOddRequests(t *testing.T) {
	t.Parallel()
	_, b := pair(t, nil)
	b.standsBy(t, "a")
	for name, fields := range map[string]string{
		"offer of HTTP/2":        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"offer of a web socket":  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"offer of no protocol":   "Connection: Upgrade\r\nUpgrade: \x80\r\n",
		"thousands of fields":    strings.Repeat("a:\r\n", 8000),
		"fields that are hosts'": "Connection: Jobhost-Client\r\nJobhost-Client: 127.0.0.1:1\r\nJobhost-Client: 127.0.0.1:2\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			status, body := raw(t, b, "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"+fields+"\r\n")
			if took := time.Since(begun); status != http.StatusOK || body != "a" {
				t.Errorf("after %v: %d %s", took, status, body)
			}
		})
	}
}

// TestManyStrangers: strangers that connect to the port for hosts are disconnected when there are too many of them, those that
// came first before the others. Hosts get in meanwhile, and those that are in stay.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	strangers := make([]net.Conn, 2*cluster.MaxStrangers)
	for i := range strangers {
		conn, err := net.Dial("tcp", a.Listens().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		strangers[i] = conn
	}
	_ = strangers[0].SetReadDeadline(time.Now().Add(time.Second)) // a third of the time that a handshake has
	if _, err := strangers[0].Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first of too many strangers is still connected")
	}
	b.standsBy(t, "a")
	w.join(t, "c").standsBy(t, "a")
}

// TestMarksOfProxies: a client doesn't get rid of what the proxy before it has added, by which the leader knows that it isn't
// on its machine.
func TestMarksOfProxies(t *testing.T) {
	t.Parallel()
	names := []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"}
	_, b := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range names {
			_, _ = io.WriteString(w, r.Header.Get(name)+" ")
		}
	}))
	request := "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: " + strings.Join(names, ", ") + "\r\n"
	for _, name := range names {
		request += name + ": proxy\r\n"
	}
	if status, body := raw(t, b, request+"\r\n"); status != http.StatusOK || body != strings.Repeat("proxy ", len(names)) {
		t.Errorf("%d %q", status, body)
	}
}

// TestFailsEachTime: a request that fails whenever the leader gets it is given up after a while, although the leader lives.
func TestFailsEachTime(t *testing.T) {
	t.Parallel()
	_, b := pair(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		func(cfg *cluster.Config) { cfg.RequestWait = 2 * time.Second })
	if status, body := raw(t, b, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}
