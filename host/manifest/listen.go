package manifest

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// CheckListen returns an error with code invalid unless addr is "host:port"
// and, since the API is served without TLS, its host is loopback, or a proxy
// in front does the TLS.
func CheckListen(addr string, behindProxy bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return wrong(`write "host:port", such as "127.0.0.1:7070"`, "%s is not an address", text.Quote(addr, text.Short))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return wrong("use 0 to 65535; 0 is any free one", "%s is not a port", text.Quote(port, text.Short))
	}
	ip, err := netip.ParseAddr(host)
	if err != nil && host != "" && !hostPattern.MatchString(host) {
		return wrong("", "%s is neither an IP address nor a host name", text.Quote(host, text.Short))
	}
	if behindProxy || host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return wrong(`listen on "127.0.0.1:`+port+`", or put a proxy in front that does TLS and set behind_proxy = true`,
		"%s can be reached from other machines, and there is no TLS", text.Quote(addr, text.Short))
}

// hostPattern admits the underscore, which container networks have in names.
var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*\.?$`)

// allowedHost normalises a name of the Host header.
func allowedHost(s string) (string, error) {
	name := strings.ToLower(s)
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return ip.String(), nil
	}
	if len(name) > 253 || !hostPattern.MatchString(name) {
		return "", wrong(`write a plain name such as "jobs.example.com", without scheme, port or wildcard`, "%s is not a host name", text.Quote(s, text.Short))
	}
	return strings.TrimSuffix(name, "."), nil
}
