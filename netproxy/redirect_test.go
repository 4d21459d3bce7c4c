package netproxy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/netproxy"
)

// hop is a request that a server has seen.
type hop struct{ Method, URL, Body string }

// redirecting is a server for all hosts: /STATUS/LOCATION redirects, anything else
// ends the chain. It records its requests.
func redirecting(seen *[]hop, headers *[]http.Header) *wire {
	return &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
		*seen = append(*seen, hop{r.Method, "http://" + r.Host + r.URL.Path, r.Header.Get("X-Test-Body")})
		*headers = append(*headers, r.Header)
		switch r.URL.Path {
		case "/ping":
			return reply(w, 302, "Location: pong\r\n", "")
		case "/pong":
			return reply(w, 307, "Location: /ping\r\n", "")
		}
		moved := "moved"
		if r.Method == http.MethodHead {
			moved = ""
		}
		status, location, ok := strings.Cut(strings.TrimPrefix(r.URL.RequestURI(), "/"), "/")
		code, err := strconv.Atoi(status)
		if !ok || err != nil {
			return reply(w, 200, "", strings.Replace(moved, "moved", "end", 1))
		}
		return reply(w, code, "Location: "+location+"\r\n", moved)
	})}
}

func TestRedirectMethods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status           int
		method, want     string
		bodyAfter, typed bool
	}{
		{301, "GET", "GET", false, true},
		{301, "POST", "GET", false, false},
		{301, "PUT", "PUT", true, true},
		{302, "POST", "GET", false, false},
		{302, "DELETE", "DELETE", true, true},
		{302, "HEAD", "HEAD", false, true},
		{303, "POST", "GET", false, false},
		{303, "PUT", "GET", false, false},
		{303, "HEAD", "HEAD", false, true},
		{307, "POST", "POST", true, true},
		{308, "PATCH", "PATCH", true, true},
	} {
		t.Run(fmt.Sprint(tt.status, tt.method), func(t *testing.T) {
			t.Parallel()
			var seen []hop
			var headers []http.Header
			w := redirecting(&seen, &headers)
			spec := netproxy.RequestSpec{
				ID: "id", Method: tt.method, URL: fmt.Sprintf("http://a.example/%d/http://a.example/end", tt.status),
				Header: http.Header{"Content-Type": {"text/plain"}}, HostHeader: http.Header{"Content-Language": {"en"}, "X-Host": {"h"}},
			}
			if tt.method != "GET" && tt.method != "HEAD" {
				spec.Body = []byte("body")
			}
			resp, err := call(t, w.client(t, netproxy.Config{}), spec)
			if err != nil {
				t.Fatal(err)
			}
			body := ""
			if tt.bodyAfter {
				body = "body"
			}
			want := []hop{{tt.method, fmt.Sprintf("http://a.example/%d/http://a.example/end", tt.status), string(spec.Body)}, {tt.want, "http://a.example/end", body}}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
			if got := headers[1].Get("Content-Type") != ""; got != tt.typed {
				t.Errorf("Content-Type sent: %t", got)
			}
			if got := headers[1].Get("Content-Language") != ""; got != tt.typed || headers[1].Get("X-Host") != "h" {
				t.Errorf("of the host's fields there are %v", headers[1])
			}
			if resp.RequestID != "id/2" || resp.URL != "http://a.example/end" || resp.Method != tt.want || len(resp.Redirects) != 1 {
				t.Errorf("got %+v", resp)
			}
		})
	}
}

// Where redirects lead: row H21.
func TestRedirects(t *testing.T) {
	t.Parallel()
	chain := func(n int) string { return strings.Repeat("/302/http://a.example", n) + "/end" }
	for _, tt := range []struct {
		name, path string
		max        *int
		kind       netproxy.Kind // "" = a response
		code       netproxy.Code
		status     int
		id         string // of the last hop
		asked      int
	}{
		{"five", chain(5), nil, "", "", 200, "id/6", 6},
		{"six", chain(6), nil, netproxy.KindRedirect, netproxy.CodeTooMany, 0, "id/6", 6},
		{"eleven", chain(11), nil, netproxy.KindRedirect, netproxy.CodeTooMany, 0, "id/6", 6},
		{"more than the client's", chain(6), new(100), netproxy.KindRedirect, netproxy.CodeTooMany, 0, "id/6", 6},
		{"one of its own", chain(2), new(1), netproxy.KindRedirect, netproxy.CodeTooMany, 0, "id/2", 2},
		{"returned", chain(2), new(0), "", "", 302, "id", 1},
		{"to itself", "/302/end", nil, netproxy.KindRedirect, netproxy.CodeRecursive, 0, "id/2", 1}, // being relative
		{"in a circle", "/ping", nil, netproxy.KindRedirect, netproxy.CodeRecursive, 0, "id/3", 2},
		{"without a place", "/302/", nil, "", "", 302, "id", 1},
		{"of no host", "/302//end", nil, "", "", 200, "id/2", 2},
		{"to another host by two slashes", "/302///b.example/end", nil, "", "", 200, "id/2", 2},
		{"with a fragment", "/302/http://b.example/end%23x", nil, "", "", 200, "id/2", 2},
		{"to a private address", "/302/http://10.0.0.1/", nil, netproxy.KindRequest, netproxy.CodeDenied, 0, "id/2", 1},
		{"to loopback by 307", "/307/http://127.0.0.1:8080/", nil, netproxy.KindRequest, netproxy.CodeDenied, 0, "id/2", 1},
		{"to a port that no rule allows", "/302/http://b.example:22/", nil, netproxy.KindRequest, netproxy.CodeDenied, 0, "id/2", 1},
		{"to a file", "/302/file:///etc/passwd", nil, netproxy.KindRequest, netproxy.CodeProtocol, 0, "id", 1},
		{"to gopher", "/302/gopher://b.example/", nil, netproxy.KindRequest, netproxy.CodeProtocol, 0, "id", 1},
		{"with a user", "/302/http://user:pw@b.example/", nil, netproxy.KindRequest, netproxy.CodeProtocol, 0, "id", 1},
		{"to no URL", "/302/http://%25zz/", nil, netproxy.KindRequest, netproxy.CodeProtocol, 0, "id", 1},
		{"to a number", "/302/http://2130706433/", nil, netproxy.KindRequest, netproxy.CodeProtocol, 0, "id", 1},
		{"not modified", "/304/http://b.example/end", nil, "", "", 304, "id", 1},
		{"300", "/300/http://b.example/end", nil, "", "", 300, "id", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen []hop
			var headers []http.Header
			w := redirecting(&seen, &headers)
			resp, err := call(t, w.client(t, netproxy.Config{}), netproxy.RequestSpec{ID: "id", URL: "http://a.example" + tt.path, MaxRedirects: tt.max})
			if tt.kind != "" {
				e := wantCode(t, err, tt.kind, tt.code)
				if e.RequestID != tt.id {
					t.Errorf("the hop is %s, want %s", e.RequestID, tt.id)
				}
			} else if err != nil || resp.Status != tt.status || resp.RequestID != tt.id {
				t.Errorf("got %+v, %v", resp, err)
			}
			if len(seen) != tt.asked {
				t.Errorf("the server was asked %d times, want %d: %v", len(seen), tt.asked, seen)
			}
		})
	}
}

// What is meant for one origin doesn't reach another.
func TestSecretsAndRedirects(t *testing.T) {
	t.Parallel()
	secrets := http.Header{
		"Authorization": {"Basic eDp5"}, "Cookie": {"a=b"}, "X-Api-Key": {"k"}, "X_api_key": {"k"}, "X-Auth-Token": {"t"}, "X-Amz-Security-Token": {"t"},
		"Apikey": {"k"}, "X-Csrf-Token": {"t"}, "X-Session-Id": {"s"}, "X-Hub-Signature": {"s"}, "X-Client-Secret": {"s"}, "Ocp-Apim-Subscription-Password": {"p"}, "Ocp-Apim-Subscription-Key": {"k"}, "X-Functions-Key": {"k"}, "DD-APPLICATION-KEY": {"k"},
	}
	open := http.Header{"Accept": {"text/plain"}, "X-Request": {"1"}}
	all := secrets.Clone()
	for name, values := range open {
		all[name] = values
	}
	for _, tt := range []struct {
		name, to string
		kept     bool
	}{
		{"the same origin", "http://a.example/end", true},
		{"the same, written otherwise", "http://A.EXAMPLE.:80/end", true},
		{"another host", "http://b.example/end", false},
		{"a name below", "http://sub.a.example/end", false},
		{"another port", "http://a.example:8080/end", false},
		{"there and back", "http://b.example/302/http://a.example/end", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen []hop
			var headers []http.Header
			w := redirecting(&seen, &headers)
			_, err := call(t, w.client(t, netproxy.Config{}), netproxy.RequestSpec{
				URL: "http://a.example/302/" + tt.to, Header: all, HostHeader: http.Header{"Idempotency-Key": {"job/0/1"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			last := headers[len(headers)-1]
			for name := range secrets {
				if sent := last[http.CanonicalHeaderKey(name)] != nil; sent != tt.kept {
					t.Errorf("%s sent: %t", name, sent)
				}
			}
			if sent := last.Get("Idempotency-Key") != ""; sent != tt.kept {
				t.Errorf("what the host added was sent: %t", sent)
			}
			for name := range open {
				if last[name] == nil {
					t.Errorf("%s is gone", name)
				}
			}
			if last.Get("Referer") != "" {
				t.Error("there is a Referer")
			}
		})
	}
}

// The body of a redirect is read only up to a limit, and its connection reused if that was all.
func TestRedirectBodies(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 100_000} {
		var seen []string
		w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
			seen = append(seen, r.URL.Path)
			if r.URL.Path == "/end" {
				return reply(w, 200, "", "end")
			}
			return reply(w, 302, "Location: /end\r\n", strings.Repeat("x", size))
		})}
		if _, err := call(t, w.client(t, netproxy.Config{}), netproxy.RequestSpec{URL: "http://a.example/begin"}); err != nil {
			t.Fatal(err)
		}
		if want := int64(1 + size/100_000); w.dials.Load() != want || !slices.Equal(seen, []string{"/begin", "/end"}) {
			t.Errorf("%d bytes: %d connections for %v, want %d", size, w.dials.Load(), seen, want)
		}
	}
}
