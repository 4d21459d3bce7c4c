// Package policy decides where HTTP requests may go: by rules on method and
// URL, and by the address that is finally dialled. It only judges; package
// guard consults it for each request and each connection.
package policy

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// Policy says what may be reached. The zero Policy allows nothing.
type Policy struct {
	// Allow lists rules, one of which must match.
	Allow []Rule
	// AllowPrivate lists ranges that may be dialled although they are special:
	// see [ParsePrefix]. A rule must match as well.
	AllowPrivate []netip.Prefix
}

// ErrNoRule is the cause of a denial when no rule matches.
var ErrNoRule = errors.New("no rule allows it")

// Judge returns nil when a request may be sent, judging by its URL; if its host is
// a name, the address is left to [Policy.JudgeAddr]. Otherwise it returns the
// error of [Denied], with [ErrNoRule] or a [*SpecialError] as its cause.
func (p *Policy) Judge(method string, u httpurl.URL) error {
	if !slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.Match(method, u) }) {
		return Denied(u, ErrNoRule)
	}
	if u.Addr.IsValid() {
		if err := p.JudgeAddr(u.Addr); err != nil {
			return Denied(u, err)
		}
	}
	return nil
}

// Names reports whether a rule names a host literally, not only by a wildcard.
func (p *Policy) Names(host string) bool {
	return slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.Host == host })
}

// Denied returns the error for a destination that may not be reached. Its message
// is the same whatever the cause, which is for operators only: otherwise anyone
// who chooses URLs could find out which names and addresses exist.
func Denied(u httpurl.URL, cause error) error {
	return &jobhost.Error{Code: jobhost.CodeDenied, Message: u.Origin() + " may not be reached", Cause: cause}
}
