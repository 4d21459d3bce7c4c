package extismabi_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
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
	only, err := extism.NewHosts([]string{"*.example"})
	if err != nil {
		t.Fatal(err)
	}
	narrow := extismabi.Options{Limits: extism.Limits{Hosts: only, ResponseBytes: 10}}
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
		{"no body wanted", ask, extismabi.Options{Limits: extism.Limits{ResponseBytes: -5}}, big, jobhost.CategoryResource, "the response from https://a.example is over the limit of 0 bytes"},
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
