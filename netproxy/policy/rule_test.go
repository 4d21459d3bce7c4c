package policy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
)

func mustParse(t testing.TB, raw string) httpurl.URL {
	t.Helper()
	u, err := httpurl.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return u
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule      string
		shown     string // empty = as it is
		yes, no   string // URLs, separated by spaces
		otherwise string // methods that it denies
	}{
		{
			"https://api.example.com", "",
			"https://api.example.com/ https://API.example.com./x/y?z https://api.example.com:443/",
			"http://api.example.com/ https://api.example.com:8443/ https://example.com/ https://x.api.example.com/ https://api.example.com.evil.test/",
			"CONNECT TRACE post",
		},
		{"HTTPS://Api.Example.Com.:443/", "https://api.example.com", "https://api.example.com/x", "https://api.example.com:444/", ""},
		{
			"https://*.example.org:8443/v1/*", "",
			"https://a.example.org:8443/v1/ https://a.b.example.org:8443/v1/x https://a.example.org:8443/%76%31/x",
			"https://example.org:8443/v1/x https://a.example.org/v1/x https://a.example.org:8443/v1 https://a.example.org:8443/v2/ https://aexample.org:8443/v1/ https://a.example.org:8443/v1%2fx https://a.example.org:8443/V1/x",
			"",
		},
		{"POST https://example.com/hook", "", "https://example.com/hook https://example.com/hook?a=b", "https://example.com/ https://example.com/hook/ https://example.com/hook2", "GET PUT"},
		{"GET,POST,GET https://example.com", "GET,POST https://example.com", "https://example.com/x", "", "PUT DELETE"},
		{"https://*", "", "https://example.com/ https://a.b.c/ https://8.8.8.8/", "http://example.com/ https://example.com:8443/", ""},
		{"http://*:8080/hooks/*", "", "http://a:8080/hooks/x", "http://a:8080/x http://a/hooks/x", ""},
		{"http://8.8.8.8", "", "http://8.8.8.8/ http://[::ffff:8.8.8.8]/", "http://8.8.4.4/", ""},
		{"https://[2606:4700:0::1111]:8443/x", "https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x", "https://[2606:4700::1112]:8443/x", ""},
		{"https://example.com/%7euser/*", "https://example.com/~user/*", "https://example.com/~user/x https://example.com/%7Euser/", "https://example.com/~other/", ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRule(tt.rule)
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.shown; r.String() != want && (want != "" || r.String() != tt.rule) {
				t.Errorf("it is shown as %s", r)
			}
			p := Policy{Allow: []Rule{r}}
			for _, raw := range strings.Fields(tt.yes) {
				if err := p.Judge("POST", mustParse(t, raw)); err != nil {
					t.Errorf("%s: %v", raw, err)
				}
				for _, method := range strings.Fields(tt.otherwise) {
					if err := p.Judge(method, mustParse(t, raw)); !errors.Is(err, ErrNoRule) {
						t.Errorf("%s %s: %v", method, raw, err)
					}
				}
			}
			for _, raw := range strings.Fields(tt.no) {
				if err := p.Judge("POST", mustParse(t, raw)); !errors.Is(err, ErrNoRule) || jobhost.CodeOf(err) != jobhost.CodeDenied {
					t.Errorf("%s: %v", raw, err)
				}
			}
		})
	}
}

func TestRulesRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "http or https",
		"*":                                   "http or https",
		"*.com":                               "http or https",
		"api.example.com":                     "http or https",
		"https://*.com":                       "too much",
		"https://*.localhost":                 "too much",
		"https://*.1.2.3.4":                   "part of an address",
		"https://a.*.com":                     "asterisk",
		"https://a*":                          "asterisk",
		"https://**":                          "asterisk",
		"https://*.*.example.com":             "asterisk",
		"https://example.com/v1*":             "asterisk",
		"https://example.com/*/x":             "asterisk",
		"https://example.com/*/*":             "asterisk",
		"http://10.0.0.0/8":                   "range of addresses",
		"http://10.0.0.0:8080/16":             "range of addresses",
		"https://[2001:db8::]/32":             "range of addresses",
		"http://10.0.0.0/8/*?":                "asterisk",
		"https://exa mple":                    "not a method",
		"FETCH https://example.com":           "not a method",
		"CONNECT https://example.com":         "not a method",
		"get https://example.com":             "not a method",
		",GET https://example.com":            "not a method",
		"GET  https://example.com":            "character",
		"ftp://example.com":                   "http or https",
		"https://user@example.com":            "user name",
		"https://example.com/?a=b":            "no query",
		"https://example.com/#a":              "fragment",
		"https://":                            "names no host",
		"https:///x":                          "names no host",
		"https://0x7f.1":                      "number and not an address",
		"https://example.com:0":               "port",
		"https://*:*":                         "asterisk",
		"https://example.com/a/../b":          ". or ..",
		"https://bücher.example":              "character",
		"https://" + strings.Repeat("a", 600): "longer than 512",
	} {
		r, err := ParseRule(text)
		if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v; want an error with %q", text, r, err, want)
		}
	}
}

// An address in a URL is judged with the URL; both denials say the same.
func TestJudge(t *testing.T) {
	t.Parallel()
	p := Policy{Allow: []Rule{{Scheme: "http", Host: "*", Port: 80, Path: "/*"}}}
	u := mustParse(t, "http://169.254.169.254/latest")
	special := p.Judge("GET", u)
	if _, ok := errors.AsType[*SpecialError](special); !ok {
		t.Errorf("got %v", special)
	}
	noRule := (&Policy{}).Judge("GET", u)
	a, _ := errors.AsType[*jobhost.Error](special)
	b, _ := errors.AsType[*jobhost.Error](noRule)
	if a == nil || b == nil || a.Code != jobhost.CodeDenied || a.Message != b.Message || a.Hint != b.Hint {
		t.Errorf("denials differ: %+v, %+v", a, b)
	}
	if strings.Contains(a.Message, "latest") {
		t.Errorf("the message repeats the path: %s", a.Message)
	}
	p.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}
	if err := p.Judge("GET", u); err != nil {
		t.Error(err)
	}
}

// A rule is what its text says, and allows the URL that it was made from.
func TestRulesProperty(t *testing.T) {
	t.Parallel()
	label := rapid.StringMatching(`[a-z][a-z0-9]{0,4}`)
	segment := rapid.StringMatching(`[a-z~%]{1,4}`).Filter(func(s string) bool { return !strings.Contains(s, "%") })
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(label, 2, 4).Draw(t, "name"), ".")
		path := "/" + strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "path"), "/")
		r := Rule{
			Methods: rapid.SampledFrom([][]string{nil, {"GET"}, {"POST", "PUT"}}).Draw(t, "methods"),
			Scheme:  rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme"),
			Host:    rapid.SampledFrom([]string{name, "*." + name, "*"}).Draw(t, "host"),
			Port:    rapid.Uint16Min(1).Draw(t, "port"),
			Path:    rapid.SampledFrom([]string{"/*", path, path + "/*"}).Draw(t, "path"),
		}
		again, err := ParseRule(r.String())
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Fatalf("%s read again (%v):\n%s", r, err, diff)
		}
		u := httpurl.URL{Scheme: r.Scheme, Port: r.Port, Path: strings.TrimSuffix(r.Path, "*")}
		u.Host = strings.Replace(strings.Replace(r.Host, "*.", "sub.", 1), "*", name, 1)
		method := "PUT"
		if len(r.Methods) > 0 {
			method = r.Methods[0]
		}
		if !r.Match(method, u) {
			t.Fatalf("%s does not allow %s %s", r, method, u)
		}
		for what, other := range map[string]httpurl.URL{
			"port":   {Scheme: u.Scheme, Host: u.Host, Port: u.Port ^ 1, Path: u.Path},
			"scheme": {Scheme: "ftp", Host: u.Host, Port: u.Port, Path: u.Path},
		} {
			if r.Match(method, other) {
				t.Fatalf("%s allows another %s: %s", r, what, other)
			}
		}
		if r.Host != "*" && r.Match(method, httpurl.URL{Scheme: u.Scheme, Host: u.Host + ".evil.test", Port: u.Port, Path: u.Path}) {
			t.Fatalf("%s allows a name that only begins so", r)
		}
	})
}

// FuzzParseRule: an accepted rule is canonical and never allows more than it
// says: no wildcard that isn't written, no method that tunnels.
func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com", "GET,POST https://*.example.org:8443/v1/*", "https://*", "http://[::1]:80/x", "*", "https://*.com", "https://a/%2a",
		"http://10.0.0.0/8", "POST http://a_b:1/~x/*",
	} {
		f.Add(seed, "https://api.example.com/v1/x")
	}
	f.Fuzz(func(t *testing.T, text, raw string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		again, err := ParseRule(r.String())
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Fatalf("%q is %s; read again (%v):\n%s", text, r, err, diff)
		}
		if strings.Count(r.Host, "*") > 0 && r.Host != "*" && (!strings.HasPrefix(r.Host, "*.") || strings.Count(r.Host, ".") < 2) {
			t.Fatalf("%q has the host %q", text, r.Host)
		}
		u, err := httpurl.Parse(raw)
		if err != nil || !r.Match("POST", u) {
			return
		}
		if r.Match("CONNECT", u) || r.Scheme != u.Scheme || r.Port != u.Port || r.Host != "*" && !strings.HasSuffix(u.Host, strings.TrimPrefix(r.Host, "*")) {
			t.Fatalf("%s allows %s", r, u)
		}
	})
}
