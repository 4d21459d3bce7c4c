// Package httpurl parses HTTP URLs into the one form in which they are compared,
// judged and sent. What browsers, resolvers and servers could interpret in two
// ways is an error here: a URL must not mean one thing to the code that judges
// it and another to the code that follows it.
package httpurl

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// MaxBytes bounds a URL.
const MaxBytes = 2048

// URL is an absolute HTTP URL in canonical form. Two URLs for the same resource
// are equal, apart from differences that only the server can judge.
type URL struct {
	Scheme string // "http" or "https"
	// Host is a name in lower case without a trailing dot, or an address
	// without brackets.
	Host string
	// Addr is the host if it is an address, never an IPv4 address mapped into
	// IPv6; the zero Addr if it is a name.
	Addr netip.Addr
	Port uint16
	// Path begins with a slash and is escaped: only where necessary, with
	// escapes in upper case.
	Path  string
	Query string // as given, without the question mark
}

// Error says what is wrong with a URL. It repeats at most its scheme and host,
// since the rest may be secret.
type Error struct {
	Message string
	Hint    string // what to do; may be empty
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func wrong(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}

const example = "write it as https://example.com/path"

// Parse parses an absolute URL. Its errors are of type [*Error].
func Parse(raw string) (URL, error) {
	c, _, err := parse(raw)
	return c, err
}

// ParseTarget parses an absolute URL, and also returns its canonical form as text
// and in the form that net/http needs. Its errors are of type [*Error].
func ParseTarget(raw string) (c URL, text string, target *url.URL, err error) {
	c, target, err = parse(raw)
	if err != nil {
		return c, "", nil, err
	}
	var room [256]byte
	canonical := c.appendTo(room[:0])
	if string(canonical) == raw {
		return c, raw, target, nil // the usual case
	}
	text = string(canonical)
	if target, err = url.Parse(text); err != nil {
		return c, "", nil, wrong(example, "this is not a URL")
	}
	return c, text, target, nil
}

// parse returns the canonical form, and what net/url has read.
func parse(raw string) (URL, *url.URL, error) {
	switch {
	case raw == "":
		return URL{}, nil, wrong(example, "the URL is empty")
	case len(raw) > MaxBytes:
		return URL{}, nil, wrong("", "a URL of %d bytes is longer than %d", len(raw), MaxBytes)
	}
	for _, r := range raw {
		if r <= ' ' || r >= 0x7f || r == '\\' {
			return URL{}, nil, wrong("escape it with %, and write names of hosts in their ASCII form, xn--…", "the URL has the character %q", r)
		}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return URL{}, nil, wrong(example, "this is not a URL") // the library's error repeats it
	case u.Scheme != "http" && u.Scheme != "https":
		return URL{}, nil, wrong(example, "this is not an absolute URL of http or https")
	case u.Opaque != "" || u.Host == "":
		return URL{}, nil, wrong(example, "the URL names no host")
	case u.User != nil:
		return URL{}, nil, wrong("leave out the @ and what stands before it", "the URL has a user name or a password")
	case strings.Contains(raw, "#"):
		return URL{}, nil, wrong("leave out the # and what follows: it is never sent", "the URL has a fragment")
	}
	c := URL{Scheme: u.Scheme, Query: u.RawQuery}
	err = c.setHost(u)
	if err == nil {
		err = c.setPath(u)
	}
	if err != nil {
		return URL{}, nil, err
	}
	return c, u, nil
}

// setPath normalises the path of u. A server may resolve dots in it after its
// beginning was judged, so there must be none: neither doubly escaped, nor
// before parameters, which begin with a semicolon.
func (c *URL) setPath(u *url.URL) error {
	for segment := range strings.FieldsFuncSeq(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return wrong("write the path without them", "the path has . or .. between slashes")
		}
	}
	for i := range len(u.Path) {
		switch rest := u.Path[i:]; {
		case rest[0] < ' ' || rest[0] == 0x7f:
			return wrong("leave it out", "the path has a control character")
		case len(rest) > 2 && rest[0] == '%' && strings.Contains("2e 2f 5c", strings.ToLower(rest[1:3])):
			return wrong("escape it once only", "the path has a dot or a slash that is escaped twice")
		}
	}
	c.Path = NormalPath(u.EscapedPath())
	return nil
}

// NormalPath returns an escaped path with no more escapes than needed, in upper
// case, and a leading slash.
func NormalPath(escaped string) string {
	if strings.HasPrefix(escaped, "/") && !strings.Contains(escaped, "%") {
		return escaped
	}
	var b strings.Builder
	if !strings.HasPrefix(escaped, "/") {
		b.WriteByte('/')
	}
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '%' || i+2 >= len(escaped) {
			b.WriteByte(escaped[i])
			continue
		}
		n, err := strconv.ParseUint(escaped[i+1:i+3], 16, 8)
		if c := byte(n); err == nil && unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(escaped[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// unreserved reports whether a byte means the same with and without an escape
// (RFC 3986, 2.3).
func unreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// DefaultPort returns the port of a scheme.
func DefaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// Origin returns scheme and host, and the port if it isn't the scheme's own.
func (c URL) Origin() string { return string(c.appendOrigin(nil)) }

func (c URL) appendOrigin(b []byte) []byte {
	b = append(b, c.Scheme...)
	b = append(b, "://"...)
	if c.Addr.Is6() {
		b = append(b, '[')
		b = append(b, c.Host...)
		b = append(b, ']')
	} else {
		b = append(b, c.Host...)
	}
	if c.Port != DefaultPort(c.Scheme) {
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(c.Port), 10)
	}
	return b
}

// String returns the URL as it is sent. Parsing it returns the same URL.
func (c URL) String() string { return string(c.appendTo(nil)) }

func (c URL) appendTo(b []byte) []byte {
	b = append(c.appendOrigin(b), c.Path...)
	if c.Query != "" {
		b = append(b, '?')
		b = append(b, c.Query...)
	}
	return b
}
