package extismabi_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

var _ hostcall.HTTP = (*services)(nil)

func TestHTTP(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	s := &services{response: hostcall.HTTPResponse{Status: 200, Body: []byte("body")}}
	run := func(request string) string {
		at := attempt(request)
		at.Services = s
		return i.must(t, "http", at)
	}
	const request = `{"url": "https://a.example:8443/x?y", "method": "post", "headers": {"B": "2", "a": "1"}, "more": [null]}`
	if got := run(request); got != "body" {
		t.Errorf("%q", got)
	}
	want := `POST https://a.example:8443/x?y ["B: 2" "a: 1"] ` + quoted(request) + ` ≤ 52428800`
	if s.requests[0] != want {
		t.Errorf("sent %s\nwant %s", s.requests[0], want)
	}
	s.response = hostcall.HTTPResponse{Status: 200, Header: map[string][]string{"Set-Cookie": {"a", "b"}, "X": nil}}
	if got := run(`{"URL": "http://a.example", "method": null}`); got != `{"set-cookie":"a,b","x":""}` {
		t.Errorf("%q", got)
	}
	if got := s.requests[1]; !strings.HasPrefix(got, `GET http://a.example []`) {
		t.Errorf("sent %s", got)
	}
	s.response.Status = 404
	at := attempt(`{"url": "http://a.example"}`)
	at.Services = s
	if got, err := i.run("http", at); err != nil || got.Failure.Message != "the plugin returned 404 and no error text" {
		t.Errorf("%+v, %v", got, err)
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// TestHTTPTraps: a request that is denied or gets no response ends the attempt.
func TestHTTPTraps(t *testing.T) {
	t.Parallel()
	only, err := extismabi.NewHosts([]string{"*.example"})
	if err != nil {
		t.Fatal(err)
	}
	narrow := extismabi.Options{Hosts: only, ResponseBytes: 10}
	fail := func(code jobhost.Code) *services {
		return &services{err: &jobhost.Error{Code: code, Message: "because\x1b"}}
	}
	big := &services{response: hostcall.HTTPResponse{Status: 200, Body: make([]byte, 11)}}
	const ask = `{"url": "https://user:pass@a.example/secret"}`
	for _, tt := range []struct {
		name, request string
		options       extismabi.Options
		services      *services
		category      jobhost.Category
		message       string
	}{
		{"no HTTP", ask, extismabi.Options{}, nil, jobhost.CategoryValidation, "HTTP request to https://a.example is not allowed: this worker has no access to HTTP"},
		{"not in the list", `{"url": "http://other.org"}`, narrow, big, jobhost.CategoryValidation, "HTTP request to http://other.org is not allowed: the host is not in allowed_hosts"},
		{"denied", ask, extismabi.Options{}, fail(jobhost.CodeDenied), jobhost.CategoryValidation, `HTTP request to https://a.example is not allowed: because\x1b`},
		{"invalid", ask, extismabi.Options{}, fail(jobhost.CodeInvalid), jobhost.CategoryValidation, `HTTP request to https://a.example: because\x1b`},
		{"too large", ask, extismabi.Options{}, fail(jobhost.CodeTooLarge), jobhost.CategoryResource, `HTTP request to https://a.example: because\x1b`},
		{"no response", ask, extismabi.Options{}, fail(jobhost.CodeUnavailable), jobhost.CategoryNetwork, `HTTP request to https://a.example: because\x1b`},
		{"over its own limit", ask, narrow, big, jobhost.CategoryResource, "the response from https://a.example is over the limit of 10 bytes"},
		{"no body wanted", ask, extismabi.Options{ResponseBytes: -5}, big, jobhost.CategoryResource, "the response from https://a.example is over the limit of 0 bytes"},
		{"long", strings.Repeat(" ", 256<<10) + ask, extismabi.Options{}, big, jobhost.CategoryResource, "the request without its body is 262189 bytes long, more than 262144"},
		{"no URL", `{}`, extismabi.Options{}, big, jobhost.CategoryValidation, `"" is not a URL with a host`},
		{"no host", `{"url": "mailto:a@b"}`, extismabi.Options{}, big, jobhost.CategoryValidation, `"mailto:a@b" is not a URL with a host`},
		{"no JSON", `hello`, extismabi.Options{}, big, jobhost.CategoryValidation, "the request is not JSON with url, method and headers: invalid character 'h' looking for beginning of value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := attempt(tt.request)
			if tt.services != nil {
				at.Services = tt.services
			}
			trap := open(t, setup{options: tt.options}, "probe").trapOf(t, "http", at)
			if trap.Call != "http_request" || trap.Category != tt.category || trap.Message != tt.message {
				t.Errorf("%s: %v", trap.Category, trap)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, yes, no string
	}{
		{"a.example", "a.example A.Example", "b.example xa.example a.examplex axexample"},
		{"*.example", "a.example b.a.example .example", "example a.example.org"},
		{"*", "a b.c", ""},
		{"json**.com", "json.com jsonplace.holder.com", "xjson.com"},
		{"?.example", "a.example", ".example ab.example"},
		{"[ab-d].example", "a.example c.example", "e.example -.example"},
		{"[!a].example", "b.example", "a.example"},
		{"{a,b.c}.example", "a.example b.c.example", "c.example {a,b.c}.example"},
		{"{a,{b,c}d}", "a bd cd", "b d"},
		{`\*.example`, "*.example", "a.example"},
		{"a+(b)|c^$", "a+(b)|c^$", "ab c"},
		{"a,b", "a,b", "a b"},
		{`[\^[].x`, `\.x ^.x [.x`, "a.x"},
		{"ü.example", "ü.example Ü.example", "u.example"},
		{"", "", "a"},
	} {
		h, err := extismabi.NewHosts([]string{"never", tt.pattern})
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, name := range strings.Fields(tt.yes) {
			if !h.Allow(name) {
				t.Errorf("%s does not allow %s", tt.pattern, name)
			}
		}
		for _, name := range strings.Fields(tt.no) {
			if h.Allow(name) {
				t.Errorf("%s allows %s", tt.pattern, name)
			}
		}
	}
	for _, pattern := range []string{"https://a.example", "a.example/x", "a:80", "[", "[]", "[!]", "[z-a]", "{a", "a}", `a\`, strings.Repeat("a", 513)} {
		if _, err := extismabi.NewHosts([]string{pattern}); err == nil {
			t.Errorf("%s is fine", pattern)
		}
	}
	if h, err := extismabi.NewHosts(make([]string, 1001)); err == nil {
		t.Errorf("1,001 patterns are fine: %v", h)
	}
	if h, err := extismabi.NewHosts(nil); err != nil || h.Allow("a") {
		t.Errorf("no patterns: %v", err)
	}
	if (*extismabi.Hosts)(nil).Allow("a") == false {
		t.Error("nobody's list denies")
	}
}
