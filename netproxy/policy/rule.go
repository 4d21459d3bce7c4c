package policy

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// Rule allows requests to some URLs.
type Rule struct {
	// Methods are those that it allows; nil = all of [Methods].
	Methods []string
	Scheme  string // "http" or "https"
	// Host is a name or an address in canonical form; "*.example.org" stands for
	// all names below example.org, and "*" for every host.
	Host string
	Port uint16
	// Path is the allowed path, or a prefix of the allowed paths if it ends
	// with an asterisk; "/*" = all.
	Path string
}

// Methods returns the methods that rules can allow. CONNECT and TRACE, which
// are addressed to proxies, are not among them.
func Methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

const (
	anyHost = "*"
	allPath = "/*"
)

// MaxRuleBytes bounds the text of a rule.
const MaxRuleBytes = 512

// ParseRule reads a rule:
//
//	https://api.example.com             everything there
//	https://*.example.org:8443/v1/*     all names below, that port, paths that begin so
//	GET,POST https://example.com/hook   these methods, this path
//	https://*                           every host
//
// A rule without a port means the port of its scheme. Errors are of type
// [*jobhost.Error] with code invalid.
func ParseRule(text string) (Rule, error) {
	const hint = `write it as "https://api.example.com", "https://*.example.org:8443/v1/*" or "POST https://example.com/hook"`
	if len(text) > MaxRuleBytes {
		return Rule{}, jobhost.Invalid("", "", "a rule of %d bytes is longer than %d", len(text), MaxRuleBytes)
	}
	var r Rule
	pattern := text
	if methods, rest, ok := strings.Cut(text, " "); ok {
		if err := r.setMethods(methods); err != nil {
			return Rule{}, err
		}
		pattern = rest
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return Rule{}, jobhost.Invalid("", hint, "%.60q does not say whether http or https is meant", text)
	}
	host, path, _ := strings.Cut(rest, "/")
	wildcard, host := cutWildcard(host)
	all := strings.HasSuffix("/"+path, allPath)
	if all {
		path = path[:len(path)-1]
	}
	if strings.Contains(host+path, "*") {
		return Rule{}, jobhost.Invalid("", hint, "an asterisk stands for a host, or for what comes before a dot in one, or after the last slash")
	}
	u, err := httpurl.Parse(scheme + "://" + host + "/" + path)
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return Rule{}, jobhost.Invalid("", hint, "%s", e.Message)
	}
	if strings.Contains(path, "?") {
		return Rule{}, jobhost.Invalid("", "leave out the ? and what follows", "a rule has no query")
	}
	r.Scheme, r.Port, r.Path = u.Scheme, u.Port, u.Path
	if all || u.Path == "/" {
		r.Path += "*"
	}
	if r.Host, err = wildcardHost(wildcard, u); err != nil {
		return Rule{}, err
	}
	if _, err := netip.ParsePrefix(u.Host + u.Path); err == nil {
		return Rule{}, jobhost.Invalid("", "list addresses one by one, or names; allow_private takes ranges", "%.60q looks like a range of addresses: this would be the path %s", u.Host+u.Path, u.Path)
	}
	return r, nil
}

// cutWildcard splits the wildcard, "", "*" or "*.", off a host, and returns a host that can be parsed.
func cutWildcard(host string) (wildcard, rest string) {
	name, port, _ := strings.Cut(host, ":")
	switch {
	case name == anyHost && port == "":
		return anyHost, "any"
	case name == anyHost:
		return anyHost, "any:" + port
	case strings.HasPrefix(host, "*."):
		return "*.", host[2:]
	}
	return "", host
}

// wildcardHost restores the wildcard.
func wildcardHost(wildcard string, u httpurl.URL) (string, error) {
	switch {
	case wildcard == anyHost:
		return anyHost, nil
	case wildcard == "":
		return u.Host, nil
	case u.Addr.IsValid():
		return "", jobhost.Invalid("", "list addresses one by one", "an asterisk can't stand for a part of an address")
	case !strings.Contains(u.Host, "."):
		return "", jobhost.Invalid("", `"https://*" allows every host, if that is meant`, "*.%s is too much for one rule", u.Host)
	}
	return wildcard + u.Host, nil
}

func (r *Rule) setMethods(text string) error {
	for method := range strings.SplitSeq(text, ",") {
		if !slices.Contains(Methods(), method) {
			return jobhost.Invalid("", "the methods are "+strings.Join(Methods(), ", "), "%.60q is not a method that can be allowed", method)
		}
		if !slices.Contains(r.Methods, method) {
			r.Methods = append(r.Methods, method)
		}
	}
	return nil
}

// String returns the rule as text that [ParseRule] reads.
func (r Rule) String() string {
	host := r.Host
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	if r.Port != httpurl.DefaultPort(r.Scheme) {
		host += ":" + strconv.Itoa(int(r.Port))
	}
	text := r.Scheme + "://" + host
	if r.Path != allPath {
		text += r.Path
	}
	if len(r.Methods) > 0 {
		text = strings.Join(r.Methods, ",") + " " + text
	}
	return text
}

// Match reports whether the rule allows a request.
func (r Rule) Match(method string, u httpurl.URL) bool {
	methods := r.Methods
	if methods == nil {
		methods = Methods()
	}
	return r.Scheme == u.Scheme && r.Port == u.Port && r.matchHost(u) && r.matchPath(u.Path) && slices.Contains(methods, method)
}

func (r Rule) matchHost(u httpurl.URL) bool {
	if r.Host == anyHost {
		return true
	}
	if suffix, ok := strings.CutPrefix(r.Host, anyHost); ok {
		return !u.Addr.IsValid() && strings.HasSuffix(u.Host, suffix)
	}
	return r.Host == u.Host
}

func (r Rule) matchPath(path string) bool {
	if prefix, ok := strings.CutSuffix(r.Path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return r.Path == path
}
