package policy

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost/internal/httpurl"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	good, bad := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.0.0.1")
	judge := func(a netip.Addr) error {
		if a == bad {
			return errors.New("private")
		}
		return nil
	}
	for _, tt := range []struct {
		name, method, url string
		addrs             []netip.Addr
		want              Verdict
	}{
		{"allowed", "GET", "https://api.example.com/v1/x", []netip.Addr{bad, good}, Verdict{
			Allowed: true, Rule: "GET https://api.example.com/v1/*",
			Addresses: []AddrVerdict{{Addr: bad, Why: "private"}, {Addr: good, Allowed: true}},
		}},
		{"no address may be dialled", "GET", "https://api.example.com/v1/x", []netip.Addr{bad}, Verdict{
			Rule: "GET https://api.example.com/v1/*", Addresses: []AddrVerdict{{Addr: bad, Why: "private"}},
		}},
		{"no address", "GET", "https://api.example.com/v1/x", nil, Verdict{Rule: "GET https://api.example.com/v1/*"}},
		{"another method and path", "POST", "https://api.example.com/v2", []netip.Addr{good}, Verdict{
			Nearest:   "GET https://api.example.com/v1/*",
			Differs:   []string{"path: the request has /v2, the rule /v1/*", "method: the request has POST, the rule GET"},
			Addresses: []AddrVerdict{{Addr: good, Allowed: true}},
		}},
		{"another host", "GET", "https://evil.test/", nil, Verdict{
			Nearest: "https://other.example", Differs: []string{"host: the request has evil.test, the rule other.example"},
		}},
		{"another port and scheme", "GET", "http://other.example:81/", nil, Verdict{
			Nearest: "https://other.example", Differs: []string{"scheme: the request has http, the rule https", "port: the request has 81, the rule 443"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p Policy
			for _, text := range []string{"GET https://api.example.com/v1/*", "https://other.example"} {
				r, err := ParseRule(text)
				if err != nil {
					t.Fatal(err)
				}
				p.Allow = append(p.Allow, r)
			}
			u, err := httpurl.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Method, tt.want.URL = tt.method, tt.url
			got := p.Explain(tt.method, u, tt.addrs, judge)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
			if got.Rule == "" != (p.Judge(tt.method, u) != nil) {
				t.Error("the explanation is not what the judge says")
			}
		})
	}
	if v := (&Policy{}).Explain("GET", httpurl.URL{Scheme: "https", Host: "a", Port: 443, Path: "/"}, nil, judge); v.Allowed || v.Nearest != "" {
		t.Errorf("got %+v of an empty policy", v)
	}
}
