package netproxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// limits is an observer that records the limits that were hit.
type limits struct {
	mu    sync.Mutex // protects the following
	names []string
	ended []netproxy.Summary
}

func (l *limits) Started(*netproxy.Request)      {}
func (l *limits) Refused(*netproxy.Task, string) {}
func (l *limits) Limit(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, name)
}

func (l *limits) Ended(_ *netproxy.Request, s netproxy.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, s)
}

// drip writes a little at a time, endlessly.
func drip(conn net.Conn, begin, piece string, every time.Duration) {
	_, err := io.WriteString(conn, begin)
	for err == nil {
		time.Sleep(every)
		_, err = io.WriteString(conn, piece)
	}
}

// flood writes without a pause, endlessly.
func flood(w io.Writer, begin, piece string) {
	_, err := io.WriteString(w, begin)
	piece = strings.Repeat(piece, 100)
	for err == nil {
		_, err = io.WriteString(w, piece)
	}
}

const header = "HTTP/1.1 200 OK\r\n"

func gzipped(n int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	return b.String()
}

// Servers that send too much, too slowly, or nothing: rows H28, H29 and H31.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	bomb := gzipped(10 << 20)
	for _, tt := range []struct {
		name  string
		serve func(conn net.Conn)
		code  netproxy.Code
		limit string
		after time.Duration // exact, as time is in a bubble; 0 = at once
	}{
		{"silence", func(conn net.Conn) { drip(conn, "", "", 30*time.Second) }, netproxy.CodeTimeout, netproxy.LimitTimeout, time.Minute},
		{"header without an end", func(conn net.Conn) { drip(conn, header+"X: ", "x", 200*time.Millisecond) }, netproxy.CodeTimeout, netproxy.LimitIdle, 10 * time.Second},
		{"slow body", func(conn net.Conn) { drip(conn, header+"\r\n", "x", 200*time.Millisecond) }, netproxy.CodeTimeout, netproxy.LimitMinRate, 10 * time.Second},
		{"body that stops", func(conn net.Conn) { drip(conn, header+"Content-Length: 10\r\n\r\n12345", "x", time.Hour) }, netproxy.CodeTimeout, netproxy.LimitIdle, 10 * time.Second},
		{"body just fast enough", func(conn net.Conn) {
			drip(conn, header+"\r\n", strings.Repeat("x", 500), 5*time.Second)
		}, netproxy.CodeTimeout, netproxy.LimitTimeout, time.Minute},
		{"interim responses, then silence", func(conn net.Conn) {
			drip(conn, "HTTP/1.1 103 Early Hints\r\n\r\n", "", 30*time.Second)
		}, netproxy.CodeTimeout, netproxy.LimitTimeout, time.Minute},
		{"interim responses for ever", func(conn net.Conn) { flood(conn, "", "HTTP/1.1 103 Early Hints\r\n\r\n") }, netproxy.CodeTooLarge, netproxy.LimitHeaderBytes, 0},
		{"many fields", func(conn net.Conn) { flood(conn, header, "X-Field: value\r\n") }, netproxy.CodeTooLarge, netproxy.LimitHeaderBytes, 0},
		{"a long field", func(conn net.Conn) { flood(conn, header+"X: ", "xxxxxxxxxx") }, netproxy.CodeTooLarge, netproxy.LimitHeaderBytes, 0},
		{"a long status", func(conn net.Conn) { flood(conn, "HTTP/1.1 200 ", "xxxxxxxxxx") }, netproxy.CodeTooLarge, netproxy.LimitHeaderBytes, 0},
		{"chunks without an end", func(conn net.Conn) { flood(conn, header+"Transfer-Encoding: chunked\r\n\r\n", "a\r\n0123456789\r\n") }, netproxy.CodeTooLarge, netproxy.LimitResponseBytes, 0},
		{"body without an end", func(conn net.Conn) { flood(conn, header+"\r\n", "0123456789") }, netproxy.CodeTooLarge, netproxy.LimitResponseBytes, 0},
		{"10 GiB announced", func(conn net.Conn) { flood(conn, header+"Content-Length: 10737418240\r\n\r\n", "0123456789") }, netproxy.CodeTooLarge, netproxy.LimitResponseBytes, 0},
		{"gzip bomb", func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, header+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb)
		}, netproxy.CodeTooLarge, netproxy.LimitDecodeRatio, 0},
		{"trailer without an end", func(conn net.Conn) {
			flood(conn, header+"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", "X: 0123456789\r\n")
		}, netproxy.CodeConnection, "", 0},
		{"chunk without an end of its line", func(conn net.Conn) { flood(conn, header+"Transfer-Encoding: chunked\r\n\r\n5;", "xxxxxxxxxx") }, netproxy.CodeConnection, "", 0},
		{"two encodings", func(conn net.Conn) {
			_, _ = io.WriteString(conn, header+"Content-Encoding: gzip, gzip\r\nContent-Length: 0\r\n\r\n")
		}, netproxy.CodeProtocol, "", 0},
		{"two encodings in two fields", func(conn net.Conn) {
			_, _ = io.WriteString(conn, header+"Content-Encoding: br\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n")
		}, netproxy.CodeProtocol, "", 0},
		{"no gzip", func(conn net.Conn) {
			_, _ = io.WriteString(conn, header+"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n01234567890123456789")
		}, netproxy.CodeProtocol, "", 0},
		{"body that breaks off", func(conn net.Conn) { _, _ = io.WriteString(conn, header+"Content-Length: 20\r\n\r\n0123456789") }, netproxy.CodeConnection, "", 0},
		{"gzip that breaks off", func(conn net.Conn) {
			_, _ = io.WriteString(conn, header+"Content-Encoding: gzip\r\n\r\n"+gzipped(1000)[:20])
		}, netproxy.CodeConnection, "", 0},
		{"no HTTP", func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n") }, netproxy.CodeProtocol, "", 0},
		{"a status that means no response", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 000 No\r\nError: denied\r\nContent-Length: 0\r\n\r\n")
		}, netproxy.CodeProtocol, "", 0},
		{"a status below all", func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 042 No\r\nContent-Length: 0\r\n\r\n") }, netproxy.CodeProtocol, "", 0},
		{"two lengths", func(conn net.Conn) {
			_, _ = io.WriteString(conn, header+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
		}, netproxy.CodeConnection, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wire{serve: func(_ int64, conn net.Conn) {
					asked(conn)
					tt.serve(conn)
				}}
				seen := &limits{}
				c := w.client(t, netproxy.Config{Observer: seen, MaxRetries: new(0)})
				began := time.Now()
				resp, err := call(t, c, netproxy.RequestSpec{URL: "http://name.example/"})
				if err == nil {
					t.Fatalf("got %d and %d bytes", resp.Status, len(resp.Body))
				}
				wantCode(t, err, netproxy.KindRequest, tt.code)
				if took := time.Since(began); took.Round(time.Second) != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				if got := strings.Join(seen.names, " "); got != tt.limit {
					t.Errorf("limits hit: %q, want %q", got, tt.limit)
				}
				if len(seen.ended) != 1 || seen.ended[0].Code != tt.code || seen.ended[0].Received > 2<<20 {
					t.Errorf("the observer heard %+v", seen.ended)
				}
			})
		})
	}
}

// What is just within the limits.
func TestWithinLimits(t *testing.T) {
	t.Parallel()
	spaces := gzipped(60 << 10)
	for _, tt := range []struct {
		name, answer string
		length       int
	}{
		{"exactly as large as allowed", header + "\r\n" + strings.Repeat("x", 1<<20), 1 << 20},
		{"the same, announced", header + "Content-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20), 1 << 20},
		{"a short body that decodes well", fmt.Sprintf(header+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(spaces), spaces), 60 << 10},
		{"x-gzip", fmt.Sprintf(header+"Content-Encoding: x-GZIP\r\nContent-Length: %d\r\n\r\n%s", len(spaces), spaces), 60 << 10},
		{"nothing", header + "Content-Length: 0\r\n\r\n", 0},
		{"no content", "HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n", 0},
		{"an encoding that isn't known here", header + "Content-Encoding: br\r\nContent-Length: 3\r\n\r\nxxx", 3},
		{"a trailer", header + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\nx\r\n0\r\nX: y\r\n\r\n", 1},
		{"early hints", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 10) + header + "Content-Length: 1\r\n\r\nx", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{serve: says(tt.answer)}
			resp, err := call(t, w.client(t, netproxy.Config{}), netproxy.RequestSpec{URL: "http://name.example/"})
			if err != nil || len(resp.Body) != tt.length {
				t.Fatalf("got %+v, %v", resp, err)
			}
			encoded := strings.Contains(tt.answer, "br\r\n")
			if got := resp.Header.Get("Content-Encoding"); (got != "") != (encoded || resp.Status == http.StatusNoContent) {
				t.Errorf("Content-Encoding is %q", got)
			}
		})
	}
}

// A request's own bounds apply if they are smaller, and only then.
func TestBoundsOfRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
			if r.URL.Path == "/never" {
				time.Sleep(time.Hour)
			}
			return reply(w, 200, "", "0123456789")
		})}
		c := w.client(t, netproxy.Config{Timeout: 20 * time.Second, MaxResponseBytes: 9, MaxRequestBytes: 3})
		for _, max := range []int64{0, 5, 9, 10, 1 << 40} {
			_, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/", MaxResponseBytes: max})
			wantCode(t, err, netproxy.KindRequest, netproxy.CodeTooLarge)
		}
		for timeout, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Second: time.Second, time.Hour: 20 * time.Second} {
			began := time.Now()
			_, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/never", Timeout: timeout})
			wantCode(t, err, netproxy.KindRequest, netproxy.CodeTimeout)
			if took := time.Since(began); took != want {
				t.Errorf("a timeout of %v took %v, want %v", timeout, took, want)
			}
		}
		_, err := call(t, c, netproxy.RequestSpec{Method: "POST", URL: "http://a.example/", Body: []byte("1234")})
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeInvalid)
	})
}

// A slow reader is not mistaken for a slow server.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool {
			return reply(w, 200, "", strings.Repeat("x", 100))
		})}
		c := w.client(t, netproxy.Config{})
		s, err := c.Do(context.Background(), newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"}))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for p := make([]byte, 50); ; {
			time.Sleep(15 * time.Second)
			n, err := s.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 100 {
			t.Errorf("got %d bytes", len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A stream that is closed, or whose context ends, ends its request on the wire.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "context"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan time.Time, 1)
				w := &wire{serve: func(_ int64, conn net.Conn) {
					asked(conn)
					go drip(conn, header+"\r\n", strings.Repeat("x", 1000), time.Second)
					_, _ = io.Copy(io.Discard, conn)
					gone <- time.Now()
				}}
				c := w.client(t, netproxy.Config{})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				s, err := c.Do(ctx, newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"}))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3500 * time.Millisecond)
				now := time.Now()
				if how == "close" {
					_ = s.Close()
				} else {
					cancel()
				}
				if at := <-gone; !at.Equal(now) {
					t.Errorf("the server saw the end after %v", at.Sub(now))
				}
				_, err = io.ReadAll(s)
				wantCode(t, err, netproxy.KindRequest, netproxy.CodeCancelled)
				_ = s.Close()
			})
		})
	}
}
