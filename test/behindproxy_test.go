package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
)

// Through real proxies, as documented and plain, whether the host knows of them or not: nothing
// about jobs can be read without the token, and with it events, waits and uploads work.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	for _, behind := range []bool{true, false} {
		for _, test := range proxies {
			name := test.name
			if behind {
				name += ", behind_proxy"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				settings := "[host]\nallowed_hosts = [\"" + documentedName + "\"]"
				if behind {
					settings += "\nbehind_proxy = true"
				}
				s.replace("[host]", settings)
				host := s.start()
				p := test.start(t, s.addr)
				if _, err := host.Submit(t.Context(), jobhost.Spec{Worker: "echo", ID: "private", Payload: []byte("secret")}); err != nil {
					t.Fatal(err)
				}
				awaitState(t, host, "private", jobhost.Succeeded)
				p.wantClosed(behind)
				through := client.New(p.url(""), s.token(), client.WithHTTPClient(p.client()))
				p.wantEvents(s.token(), host)
				p.wantWait(through)
				if strings.Contains(test.name, "documented") {
					p.wantUpload(through)
				}
			})
		}
	}
}

// wantClosed requests everything that can be read, without a token.
func (p *proxy) wantClosed(behind bool) {
	p.t.Helper()
	resp, err := p.get(p.t.Context(), "/openapi.json", "")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&document); err != nil {
		p.t.Fatal(err)
	}
	open := map[string]bool{"/healthz": true, "/readyz": true, "/openapi.json": true, "/metrics": !behind}
	read := 0
	for path, methods := range document.Paths {
		if methods["get"] == nil {
			continue
		}
		concrete := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "private")
		resp, err := p.get(p.t.Context(), concrete, "")
		if err != nil {
			p.t.Fatal(err)
		}
		resp.Body.Close()
		want := http.StatusUnauthorized
		if open[path] {
			want = http.StatusOK
		}
		if read++; resp.StatusCode != want {
			p.t.Errorf("GET %s without a token: %s, want %d", concrete, resp.Status, want)
		}
	}
	if read < 20 {
		p.t.Errorf("only %d paths can be read", read)
	}
}

// wantEvents checks that an event arrives while its stream is open.
func (p *proxy) wantEvents(token string, host *process) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	resp, err := p.get(ctx, "/v1/events?job=seen", token)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != ": hello" {
		p.t.Fatalf("got %s, %q, %v", resp.Status, lines.Text(), lines.Err())
	}
	if _, err := host.Submit(ctx, jobhost.Spec{Worker: "echo", ID: "seen"}); err != nil {
		p.t.Fatal(err)
	}
	for lines.Scan() {
		if lines.Text() == "event: ended" {
			return
		}
	}
	p.t.Errorf("the events ended before the job did: %v", lines.Err())
}

// wantWait checks that a wait ends when the job does.
func (p *proxy) wantWait(through *client.Client) {
	p.t.Helper()
	receipt, err := through.Submit(p.t.Context(), jobhost.Spec{Worker: "echo", Delay: time.Second, Payload: []byte("waited for")})
	if err != nil {
		p.t.Fatal(err)
	}
	job, err := through.Wait(p.t.Context(), receipt.ID)
	if err != nil || job.State != jobhost.Succeeded {
		p.t.Errorf("waiting: got %v, %v", job.State, err)
	}
}

// wantUpload checks that bodies above the default of nginx pass.
func (p *proxy) wantUpload(through *client.Client) {
	p.t.Helper()
	const size = 3 << 20
	upload, err := through.Upload(p.t.Context(), bytes.NewReader(make([]byte, size)))
	if err != nil || upload.Size != size {
		p.t.Errorf("an upload of %d bytes: got %d, %v", size, upload.Size, err)
	}
}

// Requests whose end two servers could see in different places: what real proxies pass on of
// them can be read in only one way.
func TestSmugglingThroughProxies(t *testing.T) {
	t.Parallel()
	const (
		hidden = "GET /openapi.json HTTP/1.1\r\nHost: " + documentedName + "\r\n\r\n"
		post   = "POST /v1/jobs HTTP/1.1\r\nHost: " + documentedName + "\r\nContent-Type: application/json\r\n"
	)
	attacks := map[string]string{
		"both lengths":          "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"both, other order":     "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden,
		"coding with a space":   "Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"coding with a tab":     "Content-Length: 4\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + hidden,
		"coding in two lines":   "Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
		"unknown coding":        "Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":           "Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + "0\r\n\r\n" + hidden,
		"length over two lines": "Content-Length:\r\n 0\r\n\r\n" + hidden,
	}
	s := newSite(t)
	s.replace("[host]", "[host]\nbehind_proxy = true\nallowed_hosts = [\""+documentedName+"\"]")
	s.start()
	for _, test := range proxies {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			heard := newWiretap(t, s.addr)
			p := test.start(t, heard.addr)
			for name, attack := range attacks {
				conn := p.dial()
				// The last request makes a proxy that continues close the connection.
				last := "GET /healthz HTTP/1.1\r\nHost: " + documentedName + "\r\nConnection: close\r\n\r\n"
				if _, err := io.WriteString(conn, post+attack+last); err != nil {
					t.Fatal(err)
				}
				_, _ = io.ReadAll(conn) // the answers don't matter, nor whether the connection is cut
				for _, header := range heard.headers() {
					lengths := strings.Contains(header, "\ncontent-length:") && strings.Contains(header, "\ntransfer-encoding")
					if lengths || strings.Contains(header, "\n ") || strings.Contains(header, "\n\t") || strings.Count(header, "\ncontent-length") > 1 {
						t.Errorf("%s: the proxy passed on\n%s", name, header)
					}
				}
			}
			if len(heard.headers()) == 0 {
				t.Error("nothing came through the proxy")
			}
		})
	}
}

// wiretap forwards connections and records what was sent over them.
type wiretap struct {
	addr string
	mu   sync.Mutex // protects sent
	sent []*bytes.Buffer
}

func newWiretap(t *testing.T, upstream string) *wiretap {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &wiretap{addr: listener.Addr().String()}
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		listener.Close()
		group.Wait()
	})
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(ctx, "tcp", upstream)
			if err != nil {
				conn.Close()
				continue
			}
			heard := new(bytes.Buffer)
			tap.mu.Lock()
			tap.sent = append(tap.sent, heard)
			tap.mu.Unlock()
			hangUp := sync.OnceFunc(func() {
				conn.Close()
				to.Close()
			})
			context.AfterFunc(ctx, hangUp)
			group.Go(func() {
				defer hangUp()
				_, _ = io.Copy(io.MultiWriter(&tapWriter{tap, heard}, to), conn)
			})
			group.Go(func() {
				defer hangUp()
				_, _ = io.Copy(conn, to)
			})
		}
	})
	return tap
}

// tapWriter records what is sent over one connection.
type tapWriter struct {
	tap  *wiretap
	into *bytes.Buffer
}

func (w *tapWriter) Write(p []byte) (int, error) {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	return w.into.Write(p)
}

var headerPattern = regexp.MustCompile(`(?s)(get|post) /.*?\r\n\r\n`)

// headers returns the headers of all requests so far, in lower case.
func (t *wiretap) headers() (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sent := range t.sent {
		all = append(all, headerPattern.FindAllString(strings.ToLower(sent.String()), -1)...)
	}
	return all
}
