package netproxy_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	header := http.Header{"accept": {"a/b"}, "X-Mine": {"template"}, "Host": {"evil.example"}}
	tmpl, err := netproxy.NewTemplate("https://api.example/v1/", header, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	header.Set("X-Mine", "changed")
	for _, tt := range []struct {
		name string
		spec netproxy.RequestSpec
		url  string // "" = an error
		mine string
		time time.Duration
	}{
		{"relative", netproxy.RequestSpec{URL: "users?x=y"}, "https://api.example/v1/users?x=y", "template", 5 * time.Second},
		{"from the root", netproxy.RequestSpec{URL: "/v2"}, "https://api.example/v2", "template", 5 * time.Second},
		{"absolute", netproxy.RequestSpec{URL: "http://b.example/"}, "http://b.example/", "template", 5 * time.Second},
		{"the base", netproxy.RequestSpec{}, "https://api.example/v1/", "template", 5 * time.Second},
		{"its own", netproxy.RequestSpec{URL: "x", Header: http.Header{"x-mine": {"own"}}, Timeout: time.Second}, "https://api.example/v1/x", "own", time.Second},
		{"no reference", netproxy.RequestSpec{URL: "%zz"}, "", "", 0},
		{"a user", netproxy.RequestSpec{URL: "//user@b.example/"}, "", "", 0},
		{"a bad field", netproxy.RequestSpec{URL: "x", Header: http.Header{"X": {"\n"}}}, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.spec.Header.Clone()
			r, err := tmpl.New(tt.spec)
			if diff := cmp.Diff(before, tt.spec.Header); diff != "" {
				t.Errorf("the header of the spec was changed:\n%s", diff)
			}
			if tt.url == "" {
				if jobhost.CodeOf(err) != jobhost.CodeInvalid {
					t.Errorf("got %v, %v", r, err)
				}
				return
			}
			if err != nil || r.URL() != tt.url || r.Header().Get("X-Mine") != tt.mine || r.Header().Get("Accept") != "a/b" || r.Header().Get("Host") != "" || r.Timeout() != tt.time {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	for _, bad := range []string{"nonsense", "ftp://a.example"} {
		if _, err := netproxy.NewTemplate(bad, nil, 0); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := netproxy.NewTemplate("", http.Header{"a b": {"c"}}, 0); err == nil {
		t.Error("a bad header is taken")
	}
	if plain, err := netproxy.NewTemplate("", nil, 0); err != nil {
		t.Error(err)
	} else if _, err := plain.New(netproxy.RequestSpec{URL: "relative"}); err == nil {
		t.Error("there is no base, and a relative URL is taken")
	}
}

// A request hands out copies only.
func TestRequestsDontChange(t *testing.T) {
	t.Parallel()
	spec := netproxy.RequestSpec{URL: "http://a.example/", Header: http.Header{"X": {"1"}}, HostHeader: http.Header{"Y": {"1"}}, Body: []byte("body"), MaxRedirects: new(1)}
	r := newRequest(t, spec)
	want := r.Spec()
	spec.Header["X"][0], spec.HostHeader["Y"][0], spec.Body[0], *spec.MaxRedirects = "2", "2", 'B', 2
	r.Header()["X"][0], r.HostHeader()["Y"][0], r.Body()[0] = "2", "2", 'B'
	other := r.Spec()
	other.Header["X"][0], other.Body[0], *other.MaxRedirects = "2", 'B', 2
	if diff := cmp.Diff(want, r.Spec()); diff != "" {
		t.Error(diff)
	}
	if r.Method() != "GET" || r.ID() == "" || r.Origin() != "http://a.example" || r.Size() != 4 {
		t.Errorf("got %+v", r)
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]netproxy.Config{
		"timeout":     {Timeout: -1},
		"size":        {MaxResponseBytes: -1},
		"redirects":   {MaxRedirects: new(-1)},
		"rate":        {MinRate: -2},
		"user agent":  {UserAgent: "a\nb"},
		"proxy":       {Proxy: mustParse(t, "socks5://a.example")},
		"breaker":     {Destinations: netproxy.DestinationConfig{Breaker: jobhost.BreakerPolicy{Failures: -1}}},
		"two of them": {Timeout: -1, Hosts: -1},
	} {
		if _, err := netproxy.New(cfg); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
