// Package policy says which places HTTP requests may go to: by rules on method
// and URL, and by the address that is dialled in the end. It judges and does
// nothing else; package guard asks it for each request and each connection.
package policy

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// Policy is what may be reached. The zero Policy allows nothing.
type Policy struct {
	// Allow are rules of which one must match.
	Allow []Rule
	// AllowPrivate are ranges that may be dialled although they are special: see
	// [ParsePrefix]. A rule must match beside it.
	AllowPrivate []netip.Prefix
}

// ErrNoRule is the cause of a denial when no rule matches.
var ErrNoRule = errors.New("no rule allows it")

// Judge returns nil when a request may be sent, as far as its URL tells; where its
// host is a name, the address is left for [Policy.JudgeAddr]. Otherwise the
// error is that of [Denied], with [ErrNoRule] or a [*SpecialError] as its cause.
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

// Names reports whether a rule names a host, and not only by an asterisk.
func (p *Policy) Names(host string) bool {
	return slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.Host == host })
}

// Denied returns the error for a place that may not be reached. Its message is the
// same whatever the cause, which is for operators only: otherwise whoever
// chooses URLs could find out which names and addresses there are.
func Denied(u httpurl.URL, cause error) error {
	return &jobhost.Error{Code: jobhost.CodeDenied, Message: u.Origin() + " may not be reached", Cause: cause}
}
