package httpurl

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// setHost normalises host and port of u.
func (c *URL) setHost(u *url.URL) error {
	c.Port = DefaultPort(c.Scheme)
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' {
			return wrong("", "the port of the URL is not between 1 and 65535")
		}
		c.Port = uint16(n)
	}
	host := u.Hostname()
	var err error
	if strings.HasPrefix(u.Host, "[") {
		c.Addr, err = netip.ParseAddr(host)
		if err != nil || !c.Addr.Is6() || c.Addr.Zone() != "" {
			return wrong("", "%.60q is not an IPv6 address without a zone", host)
		}
		c.Addr = c.Addr.Unmap()
		c.Host = c.Addr.String()
		return nil
	}
	c.Host, c.Addr, err = Name(host)
	return err
}

// Name returns the canonical form of a host without brackets: a name, or an
// IPv4 address, which is also returned parsed.
func Name(host string) (string, netip.Addr, error) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if len(name) > 253 {
		return "", netip.Addr{}, wrong("", "a host name of %d bytes is longer than 253", len(name))
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "", netip.Addr{}, wrong("use names of a-z 0-9 - _ and dots, or addresses such as 192.0.2.1 and [2001:db8::1]",
				"%.60q is not the name of a host", host)
		}
		last = label
	}
	if !numeric(last) {
		return name, netip.Addr{}, nil
	}
	// Some resolvers interpret 127.1, 2130706433 and 0x7f.1 as 127.0.0.1.
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return "", netip.Addr{}, wrong("write an address as four numbers, such as 192.0.2.1", "%.60q is a number and not an address", host)
	}
	return addr.String(), addr, nil
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// numeric reports whether a last label makes a host a number, as defined by
// WHATWG's URL standard ("ends in a number").
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, digits+"abcdef"
	}
	return strings.Trim(label, digits) == ""
}
