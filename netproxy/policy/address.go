package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/jobhost/jobhost"
)

// SpecialError says that an address is not on the public internet.
type SpecialError struct {
	Addr netip.Addr
	Kind string // what it is, such as "loopback"
}

// Error says what the address is, and how it could be allowed.
func (e *SpecialError) Error() string {
	return fmt.Sprintf("%v is special (%s) and not in allow_private", e.Addr, e.Kind)
}

// special are the ranges that no request reaches unless they are allowed: all of
// IANA's special-purpose registries except those that are publicly routed
// (AS112), and metadata services that clouds place elsewhere. In IPv6 everything
// that is not assigned is special too: see [kindOf].
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by carriers"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relays"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// metadata are the addresses at which clouds give machines their credentials. A
// range that merely contains one does not allow it; only the address itself does.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // nearly all
	netip.MustParseAddr("169.254.170.2"),   // AWS, for containers
	netip.MustParseAddr("169.254.170.23"),  // AWS, for pods
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure, a public address
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS, for pods
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// globalUnicast is the part of IPv6 that is assigned to the public internet.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// kindOf returns what is special about an unmapped address; "" = nothing.
func kindOf(a netip.Addr) string {
	if slices.Contains(metadata, a) {
		return "metadata service"
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "not assigned"
	}
	return ""
}

// JudgeAddr returns nil when an address may be dialled, and a [*SpecialError]
// otherwise. It is meant for the address that is finally dialled, after names
// were resolved: only that can't change any more.
func (p *Policy) JudgeAddr(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return &SpecialError{Addr: a, Kind: "bound to an interface"}
	}
	a = a.Unmap()
	kind := kindOf(a)
	if kind == "" || p.allows(a) {
		// Where a translator or tunnel forwards to another address, that one must be allowed too.
		if inner, ok := embedded(a); ok {
			return p.JudgeAddr(inner)
		}
		return nil
	}
	return &SpecialError{Addr: a, Kind: kind}
}

// JudgeOwn returns nil when an address of this machine may be dialled: only when
// it is allowed like a special one. Otherwise anyone who chooses URLs could reach
// what listens here through the machine's public name.
func (p *Policy) JudgeOwn(a netip.Addr) error {
	if p.allows(a.Unmap()) {
		return nil
	}
	return &SpecialError{Addr: a.Unmap(), Kind: "this machine's own"}
}

// allows reports whether a special address is in an allowed range.
func (p *Policy) allows(a netip.Addr) bool {
	meta := slices.Contains(metadata, a)
	return slices.ContainsFunc(p.AllowPrivate, func(private netip.Prefix) bool {
		return private.Contains(a) && (!meta || private.IsSingleIP())
	})
}

// embedded returns the IPv4 address that packets to a finally reach, or may
// reach where they are translated.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch kindOf(a) {
	case "IPv4-compatible", "IPv4-translated", "NAT64":
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case "6to4":
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case "Teredo":
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}

// ParsePrefix reads a range for [Policy.AllowPrivate], such as 10.0.0.0/8, or a
// single address. It must not be wider than the widest private range. Errors
// are of type [*jobhost.Error] with code invalid.
func ParsePrefix(text string) (netip.Prefix, error) {
	const hint = `write it as "10.0.0.0/8", "fd00::/8" or "127.0.0.1"`
	p, err := netip.ParsePrefix(text)
	if a, e := netip.ParseAddr(text); e == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return netip.Prefix{}, jobhost.Invalid("", hint, "%.60q is not a range of addresses", text)
	case p.Addr().Is4In6():
		return netip.Prefix{}, jobhost.Invalid("", "write it as IPv4", "%s is IPv4 in IPv6", text)
	case p.Masked() != p:
		return netip.Prefix{}, jobhost.Invalid("", fmt.Sprintf("%v is the range that it is in", p.Masked()), "%s is not the beginning of a range", text)
	case p.Addr().Is4() && p.Bits() < 8 || p.Addr().Is6() && p.Bits() < 7:
		return netip.Prefix{}, jobhost.Invalid("", "name the networks that are meant", "%s is too wide", text)
	}
	return p, nil
}
