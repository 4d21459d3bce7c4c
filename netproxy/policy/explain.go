package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/httpurl"
)

// Verdict says whether a request may be sent, and why. It is for operators only:
// it contains what [Denied] withholds.
type Verdict struct {
	Method string `json:"method"`
	URL    string `json:"url"` // canonical
	// Allowed is whether a rule matches and an address may be dialled.
	Allowed bool `json:"allowed"`
	// Rule is the one that matches; "" = none.
	Rule string `json:"rule,omitempty"`
	// Nearest is the rule that comes closest to matching when none does, and Differs
	// says where it doesn't match; "" = there are no rules.
	Nearest string   `json:"nearest,omitempty"`
	Differs []string `json:"differs,omitempty"`
	// Addresses are those of the host.
	Addresses []AddrVerdict `json:"addresses,omitempty"`
}

// AddrVerdict says whether an address may be dialled.
type AddrVerdict struct {
	Addr    netip.Addr `json:"addr"`
	Allowed bool       `json:"allowed"`
	Why     string     `json:"why,omitempty"` // why it may not be dialled
}

// Explain returns the verdict on a request whose host has these addresses, each
// of which judge allows or not. It applies exactly the checks that sending does.
func (p *Policy) Explain(method string, u httpurl.URL, addrs []netip.Addr, judge func(netip.Addr) error) Verdict {
	v := Verdict{Method: method, URL: u.String()}
	matches := func(r Rule) bool { return r.Match(method, u) }
	if i := slices.IndexFunc(p.Allow, matches); i >= 0 {
		v.Rule = p.Allow[i].String()
	} else if len(p.Allow) > 0 {
		nearest := slices.MinFunc(p.Allow, func(a, b Rule) int { return a.distance(method, u) - b.distance(method, u) })
		v.Nearest, v.Differs = nearest.String(), nearest.differences(method, u)
	}
	reachable := false
	for _, addr := range addrs {
		a := AddrVerdict{Addr: addr, Allowed: true}
		if err := judge(addr); err != nil {
			a.Allowed, a.Why = false, err.Error()
		}
		reachable = reachable || a.Allowed
		v.Addresses = append(v.Addresses, a)
	}
	v.Allowed = v.Rule != "" && reachable
	return v
}

// distance is how far a rule is from allowing a request: a different host counts
// more than everything else together.
func (r Rule) distance(method string, u httpurl.URL) int {
	d := len(r.differences(method, u))
	if !r.matchHost(u) {
		d += 10
	}
	return d
}

// differences returns, for people, what keeps a rule from allowing a request.
func (r Rule) differences(method string, u httpurl.URL) []string {
	var all []string
	differ := func(what string, has, wants any) {
		all = append(all, fmt.Sprintf("%s: the request has %v, the rule %v", what, has, wants))
	}
	if r.Scheme != u.Scheme {
		differ("scheme", u.Scheme, r.Scheme)
	}
	if !r.matchHost(u) {
		differ("host", u.Host, r.Host)
	}
	if r.Port != u.Port {
		differ("port", u.Port, r.Port)
	}
	if !r.matchPath(u.Path) {
		differ("path", u.Path, r.Path)
	}
	methods := r.Methods
	if methods == nil {
		methods = Methods()
	}
	if !slices.Contains(methods, method) {
		differ("method", method, strings.Join(methods, ","))
	}
	return all
}
