package netproxy_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// What can't be a request: rows H8, H14, H15, H17 to H19, H23 and H26.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	good := netproxy.RequestSpec{URL: "http://a.example/"}
	with := func(change func(*netproxy.RequestSpec)) netproxy.RequestSpec {
		spec := good
		change(&spec)
		return spec
	}
	url := func(u string) netproxy.RequestSpec { return netproxy.RequestSpec{URL: u} }
	method := func(m string) netproxy.RequestSpec {
		return with(func(s *netproxy.RequestSpec) { s.Method = m })
	}
	field := func(name, value string) netproxy.RequestSpec {
		return with(func(s *netproxy.RequestSpec) { s.Header = http.Header{name: {value}} })
	}
	many := http.Header{}
	for range netproxy.MaxHeaders + 1 {
		many.Add("X", "y")
	}
	for _, tt := range []struct {
		name string
		spec netproxy.RequestSpec
		code jobhost.Code
	}{
		{"no URL", url(""), jobhost.CodeInvalid},
		{"user", url("http://allowed.example@127.0.0.1/"), jobhost.CodeInvalid},
		{"user and port", url("http://allowed.example:80@127.0.0.1:80/"), jobhost.CodeInvalid},
		{"backslash", url(`http://127.0.0.1/\@allowed.example/`), jobhost.CodeInvalid},
		{"NUL", url("http://a%00.example/"), jobhost.CodeInvalid},
		{"escaped host", url("http://%31%32%37.0.0.1/"), jobhost.CodeInvalid},
		{"escaped slash in a host", url("http://a%2fb/"), jobhost.CodeInvalid},
		{"space", url("http://a b/"), jobhost.CodeInvalid},
		{"end of line in a path", url("http://a.example/\r\nHost: b"), jobhost.CodeInvalid},
		{"end of line in a host", url("http://a.example\r\nX: y/"), jobhost.CodeInvalid},
		{"not ASCII", url("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/"), jobhost.CodeInvalid},
		{"zone", url("http://[fe80::1%25lo]/"), jobhost.CodeInvalid},
		{"decimal", url("http://2130706433/"), jobhost.CodeInvalid},
		{"hexadecimal", url("http://0x7f.1/"), jobhost.CodeInvalid},
		{"short", url("http://127.1/"), jobhost.CodeInvalid},
		{"octal", url("http://0177.0.0.1/"), jobhost.CodeInvalid},
		{"long octal", url("http://017700000001/"), jobhost.CodeInvalid},
		{"zero", url("http://0/"), jobhost.CodeInvalid},
		{"port 99999", url("http://a.example:99999/"), jobhost.CodeInvalid},
		{"port -1", url("http://a.example:-1/"), jobhost.CodeInvalid},
		{"file", url("file:///etc/passwd"), jobhost.CodeInvalid},
		{"gopher", url("gopher://a.example/"), jobhost.CodeInvalid},
		{"unix", url("unix:///run/x.sock"), jobhost.CodeInvalid},
		{"http+unix", url("http+unix://%2frun%2fx/"), jobhost.CodeInvalid},
		{"ftp", url("ftp://a.example/"), jobhost.CodeInvalid},
		{"data", url("data:text/plain,x"), jobhost.CodeInvalid},
		{"no scheme", url("//a.example/"), jobhost.CodeInvalid},
		{"opaque", url("http:a.example"), jobhost.CodeInvalid},
		{"CONNECT", method("CONNECT"), jobhost.CodeDenied},
		{"TRACE", method("TRACE"), jobhost.CodeDenied},
		{"lower case", method("get"), jobhost.CodeDenied},
		{"end of line in a method", method("GET / HTTP/1.1\r\nX: y"), jobhost.CodeDenied},
		{"10 kB method", method(strings.Repeat("A", 10_000)), jobhost.CodeDenied},
		{"end of line in a field", field("X", "a\r\nY: b"), jobhost.CodeInvalid},
		{"line feed in a field", field("X", "a\nY: b"), jobhost.CodeInvalid},
		{"NUL in a field", field("X", "a\x00"), jobhost.CodeInvalid},
		{"end of line in a name", field("X\r\nY", "a"), jobhost.CodeInvalid},
		{"space in a name", field("X ", "a"), jobhost.CodeInvalid},
		{"colon in a name", field("X:", "a"), jobhost.CodeInvalid},
		{"no name", field("", "a"), jobhost.CodeInvalid},
		{"pseudo field", field(":path", "/"), jobhost.CodeInvalid},
		{"end of line in Host", field("Host", "b\r\nX: y"), jobhost.CodeInvalid},
		{"huge field", field("X", strings.Repeat("x", netproxy.MaxHeaderBytes)), jobhost.CodeTooLarge},
		{"many fields", with(func(s *netproxy.RequestSpec) { s.Header = many }), jobhost.CodeTooLarge},
		{"bad field of the host", with(func(s *netproxy.RequestSpec) { s.HostHeader = http.Header{"X": {"\r"}} }), jobhost.CodeInvalid},
		{"end of line in an id", with(func(s *netproxy.RequestSpec) { s.ID = "a\nb" }), jobhost.CodeInvalid},
		{"long id", with(func(s *netproxy.RequestSpec) { s.ID = strings.Repeat("x", netproxy.MaxIDBytes+1) }), jobhost.CodeInvalid},
		{"negative timeout", with(func(s *netproxy.RequestSpec) { s.Timeout = -1 }), jobhost.CodeInvalid},
		{"negative bound", with(func(s *netproxy.RequestSpec) { s.MaxResponseBytes = -1 }), jobhost.CodeInvalid},
		{"negative redirects", with(func(s *netproxy.RequestSpec) { s.MaxRedirects = new(-1) }), jobhost.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := netproxy.NewRequest(tt.spec)
			if _, typed := errors.AsType[*jobhost.Error](err); !typed || jobhost.CodeOf(err) != tt.code {
				t.Errorf("got %v, %v, want %s", r, err, tt.code)
			}
		})
	}
}

// What the server receives of a request: rows H25 and H36.
func TestSentHeader(t *testing.T) {
	t.Parallel()
	var got []http.Header
	var hosts []string
	w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
		hosts = append(hosts, r.Host)
		h := r.Header.Clone()
		h.Del("X-Test-Body")
		got = append(got, h)
		if len(r.TransferEncoding) > 0 || r.ContentLength != 4 {
			t.Errorf("framed by %v and %d", r.TransferEncoding, r.ContentLength)
		}
		return reply(w, 200, "Set-Cookie: a=b\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nETag: x\r\n", "")
	})}
	c := w.client(t, netproxy.Config{})
	lower := strings.ToLower("X-Mine")
	spec := netproxy.RequestSpec{
		Method: "POST", URL: "http://a.example/", Body: []byte("body"),
		Header: http.Header{
			lower: {"1", "2"}, "Host": {"evil.example"}, "Content-Length": {"400"}, "Transfer-Encoding": {"chunked"}, "Connection": {"close, X-Close"}, "X-Close": {"1"},
			"Keep-Alive": {"1"}, "Proxy-Authorization": {"x"}, "Proxy-Connection": {"x"}, "TE": {"trailers"}, "Trailer": {"X"}, "Upgrade": {"websocket"}, "Expect": {"100-continue"},
			"Accept-Encoding": {"br"}, "HTTP2-Settings": {"x"}, "Content-Type": {"a/b"},
			"Forwarded": {"for=10.0.0.1"}, "Via": {"1.1 x"}, "X-Forwarded-For": {"10.0.0.1"}, "X-Forwarded-Host": {"admin"}, "x_forwarded_for": {"10.0.0.1"},
			"X-Real-IP": {"10.0.0.1"}, "X-HTTP-Method-Override": {"DELETE"}, "X-Original-URL": {"/admin"},
		},
		HostHeader: http.Header{"Content-Type": {"c/d"}},
	}
	for range 2 {
		resp, err := call(t, c, spec)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("Etag") != "x" || resp.Header.Get("X-Hop") != "" || resp.Header.Get("Connection") != "" || resp.Header.Get("Keep-Alive") != "" {
			t.Errorf("the response has %v", resp.Header)
		}
	}
	want := http.Header{
		"Accept-Encoding": {"gzip"}, "Content-Length": {"4"}, "Content-Type": {"c/d"}, "User-Agent": {"jobhost/" + version.Get().Version}, "X-Mine": {"1", "2"},
	}
	for i, h := range got {
		if len(h) != len(want) || hosts[i] != "a.example" {
			t.Errorf("request %d to %s has %v, want %v", i, hosts[i], h, want)
		}
		for name := range want {
			if strings.Join(h[name], ",") != strings.Join(want[name], ",") {
				t.Errorf("%s is %q, want %q", name, h[name], want[name])
			}
		}
	}
	if w.dials.Load() != 1 {
		t.Errorf("%d connections for two requests", w.dials.Load())
	}
	if spec.Header.Get("Host") == "" || len(spec.Header[lower]) != 2 {
		t.Error("the header of the spec was changed")
	}
	spec.Header["User-Agent"], spec.Header["Range"] = []string{"mine"}, []string{"bytes=0-1"}
	if _, err := call(t, c, spec); err != nil || got[2].Get("User-Agent") != "mine" || got[2].Get("Accept-Encoding") != "" {
		t.Errorf("got %v, %v", got[2], err)
	}
}

// Secrets reach the destinations that they are for, and no others.
func TestInjectedSecrets(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	rule, err := policy.ParseRule("http://a.example/v1/*")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
		got = append(got, r.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
		if location := r.URL.Query().Get("to"); location != "" {
			return reply(w, 302, "Location: "+location+"\r\n", "")
		}
		return reply(w, 418, "X-Echo: you sent "+r.Header.Get("Authorization")+"\r\nX-Token: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+"\r\n", "")
	})}
	var log bytes.Buffer
	c := w.client(t, netproxy.Config{
		Secrets: []netproxy.Secret{{Header: "authorization", Value: "Bearer " + canary, For: []policy.Rule{rule}}},
		Logger:  slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, tt := range []struct{ url, want string }{
		{"http://a.example/v1/x", "a.example/v1/x Bearer " + canary},
		{"http://a.example/v2", "a.example/v2 guest"},
		{"http://b.example/v1/x", "b.example/v1/x guest"},
		{"http://a.example/v1/r?to=http://b.example/v1/x", "b.example/v1/x "},
		{"http://b.example/v1/r?to=http://a.example/v1/x", "a.example/v1/x Bearer " + canary},
	} {
		r := newRequest(t, netproxy.RequestSpec{URL: tt.url, Header: http.Header{"Authorization": {"guest"}}, RaiseErrors: true})
		_, err := c.Call(t.Context(), r)
		e := wantCode(t, err, netproxy.KindHTTP, netproxy.CodeClientError)
		if last := got[len(got)-1]; last != tt.want {
			t.Errorf("%s: the server saw %q, want %q", tt.url, last, tt.want)
		}
		text, err := e.MarshalJSON()
		if err != nil || bytes.Contains(text, []byte(canary)) {
			t.Errorf("the error is %s, %v", text, err)
		}
		if r.Header().Get("Authorization") != "guest" {
			t.Error("the request was changed")
		}
	}
	if strings.Contains(log.String(), canary) || strings.Count(log.String(), "\n") != 5 {
		t.Errorf("the log is %s", log.String())
	}
	secret := netproxy.Secret{Header: "X", Value: canary}
	text, _ := secret.MarshalText()
	if all := secret.String() + secret.GoString() + secret.LogValue().String() + string(text); strings.Contains(all, canary) {
		t.Errorf("a secret shows itself: %s", all)
	}
	for _, bad := range []netproxy.Secret{{Header: "Host", Value: "x", For: []policy.Rule{rule}}, {Header: "X", For: []policy.Rule{rule}}, secret, {Header: "X", Value: canary + "\n", For: []policy.Rule{rule}}} {
		if _, err := netproxy.New(netproxy.Config{Secrets: []netproxy.Secret{bad}}); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
