package httpurl

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"plain", "https://example.com/hook", "https://example.com/hook"},
		{"no path", "https://example.com", "https://example.com/"},
		{"case", "HTTPS://Example.COM/Hook", "https://example.com/Hook"},
		{"dot at the end", "https://example.com./", "https://example.com/"},
		{"own port", "https://example.com:443/", "https://example.com/"},
		{"own port of http", "http://example.com:80", "http://example.com/"},
		{"empty port", "http://example.com:/", "http://example.com/"},
		{"other port", "https://example.com:8443", "https://example.com:8443/"},
		{"port of the other scheme", "http://example.com:443", "http://example.com:443/"},
		{"query", "https://example.com/?a=b&c=%2f", "https://example.com/?a=b&c=%2f"},
		{"empty query", "https://example.com/x?", "https://example.com/x"},
		{"escapes", "https://example.com/%7eme/%2f%C3%a9/%41", "https://example.com/~me/%2F%C3%A9/A"},
		{"what must be escaped", `https://example.com/a"b`, "https://example.com/a%22b"},
		{"dots in names", "https://example.com/a..b/...", "https://example.com/a..b/..."},
		{"one label", "http://receiver:8080/x", "http://receiver:8080/x"},
		{"underscore", "http://my_receiver/", "http://my_receiver/"},
		{"IPv4", "http://192.0.2.1/", "http://192.0.2.1/"},
		{"IPv6", "http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"},
		{"mapped", "http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"},
		{"mapped in hex", "http://[::ffff:a9fe:a9fe]/", "http://169.254.169.254/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u, err := Parse(tt.raw)
			if err != nil || u.String() != tt.want {
				t.Fatalf("got %s, %v; want %s", u, err, tt.want)
			}
			if again, err := Parse(u.String()); err != nil || again != u {
				t.Errorf("parsed again it is %+v, %v; want %+v", again, err, u)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"empty", "", "empty"},
		{"long", "https://example.com/" + strings.Repeat("x", MaxBytes), "longer than 2048"},
		{"relative", "/hook", "not an absolute URL"},
		{"no scheme", "example.com/hook", "not an absolute URL"},
		{"no host", "https:///hook", "names no host"},
		{"opaque", "https:hook", "names no host"},
		{"other scheme", "file:///etc/passwd", "not an absolute URL of http or https"},
		{"gopher", "gopher://example.com/", "not an absolute URL of http or https"},
		{"user", "https://user@example.com/", "user name or a password"},
		{"password", "https://allowed.example:80@127.0.0.1:80/", "user name or a password"},
		{"empty user", "https://@127.0.0.1/", "user name or a password"},
		{"backslash", `http://127.0.0.1\@allowed.example/`, `character '\\'`},
		{"fragment", "https://example.com/#top", "fragment"},
		{"empty fragment", "https://example.com/#", "fragment"},
		{"space", "https://exa mple.com/", "character ' '"},
		{"newline", "https://example.com/\r\nX: y", `character '\r'`},
		{"no ASCII", "https://bücher.example/", "character 'ü'"},
		{"NUL", "https://example.com/\x00", "character"},
		{"escape in the host", "https://%31%32%37.0.0.1/", "not a URL"},
		{"slash in the host", "https://a%2fb/", "not a URL"},
		{"letters of other alphabets, escaped", "https://%e2%91%a0/", "not the name of a host"},
		{"decimal", "http://2130706433/", "number and not an address"},
		{"hex", "http://0x7f.1/", "number and not an address"},
		{"hex in the last label", "http://127.0.0.0x1/", "number and not an address"},
		{"short", "http://127.1/", "number and not an address"},
		{"octal", "http://0177.0.0.1/", "number and not an address"},
		{"octal as one", "http://017700000001/", "number and not an address"},
		{"number with a dot", "http://2130706433./", "number and not an address"},
		{"zero", "http://0/", "number and not an address"},
		{"zone", "http://[fe80::1%25lo]/", "without a zone"},
		{"IPv4 in brackets", "http://[127.0.0.1]/", "not a URL"},
		{"two dots", "http://a..b/", "not the name of a host"},
		{"only a dot", "http://./", "not the name of a host"},
		{"two dots at the end", "http://example.com../", "not the name of a host"},
		{"hyphen", "http://-a.example/", "not the name of a host"},
		{"asterisk", "http://*.example.com/", "not the name of a host"},
		{"long label", "http://" + strings.Repeat("a", 64) + ".example/", "not the name of a host"},
		{"long name", "http://" + strings.Repeat("a.", 130) + "example/", "longer than 253"},
		{"port 0", "http://example.com:0/", "port"},
		{"large port", "http://example.com:65536/", "port"},
		{"negative port", "http://example.com:-1/", "not a URL"},
		{"port with zeros", "http://example.com:0080/", "port"},
		{"dots", "https://example.com/v1/../admin", ". or .."},
		{"one dot", "https://example.com/./x", ". or .."},
		{"escaped dots", "https://example.com/v1/%2e%2E/admin", ". or .."},
		{"escaped dots and slash", "https://example.com/v1/%2e%2e%2fadmin", ". or .."},
		{"dots with parameters", "https://example.com/v1/..;a=b/admin", ". or .."},
		{"escaped dots with parameters", "https://example.com/v1/%2e%2e;/admin", ". or .."},
		{"dots escaped twice", "https://example.com/v1/%252e%252E/admin", "escaped twice"},
		{"slash escaped twice", "https://example.com/v1/..%252fadmin", "escaped twice"},
		{"NUL in the path", "https://example.com/v1/..%00/admin", "control character"},
		{"newline in the path", "https://example.com/v1/%0d%0ax", "control character"},
		{"escaped backslash", "https://example.com/v1/..%5cadmin", ". or .."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u, err := Parse(tt.raw)
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got %s, %v; want an error with %q", u, err, tt.want)
			}
		})
	}
}

// FuzzParse: an accepted URL is canonical, and safe to write into a request.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/a?b=c", "http://[::ffff:1.2.3.4]:8080/%2e", "http://0x7f.1/", "https://EXAMPLE.com.:443//a/%zz",
		"http://a_b.c/\\", "https://x@y/", "http://192.0.2.1", "http://[fe80::1%25lo]/", "https://example.com/%41%2f?%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := Parse(raw)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || u != (URL{}) {
				t.Fatalf("%q is %+v, %v", raw, u, err)
			}
			return
		}
		again, err := Parse(u.String())
		if err != nil || again != u {
			t.Fatalf("%q is %+v; parsed again %+v, %v", raw, u, again, err)
		}
		if strings.ContainsAny(u.String(), " \r\n\t\\#") || strings.Contains(u.Host, "@") || u.Path[0] != '/' {
			t.Fatalf("%q is %q", raw, u)
		}
		if u.Addr.IsValid() && (u.Addr.Is4In6() || u.Addr.Zone() != "" || u.Addr.String() != u.Host) {
			t.Fatalf("%q has the address %v", raw, u.Addr)
		}
	})
}
