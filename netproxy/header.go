package netproxy

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

const headerIdempotency = "Idempotency-Key"

// ownHeaders are fields that authors of requests can't set: those of a single
// connection, of proxies and of framing, those that follow from something else,
// and those by which services behind a proxy identify the client, or take
// another method or path than the one that was judged.
var ownHeaders = map[string]bool{
	"Cf-Connecting-Ip":          true,
	"Forwarded":                 true,
	"True-Client-Ip":            true,
	"Via":                       true,
	"X-Client-Ip":               true,
	"X-Cluster-Client-Ip":       true,
	"X-Forwarded":               true,
	"X-Http-Method":             true,
	"X-Http-Method-Override":    true,
	"X-Method-Override":         true,
	"X-Original-Forwarded-For":  true,
	"X-Original-Url":            true,
	"X-Real-Ip":                 true,
	"X-Rewrite-Url":             true,
	"Accept-Encoding":           true,
	"Connection":                true,
	"Content-Length":            true,
	"Expect":                    true,
	"Host":                      true,
	"Http2-Settings":            true,
	"Keep-Alive":                true,
	"Proxy-Authenticate":        true,
	"Proxy-Authentication-Info": true,
	"Proxy-Authorization":       true,
	"Proxy-Connection":          true,
	"Te":                        true,
	"Trailer":                   true,
	"Transfer-Encoding":         true,
	"Upgrade":                   true,
}

// cleanHeader returns a copy of a header with canonical names, without fields that
// its author can't set: those above and those that Connection names.
func cleanHeader(h http.Header) (http.Header, error) {
	if len(h) == 0 {
		return nil, nil
	}
	clean := make(http.Header, len(h))
	size, count := 0, 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !isToken(name) {
			return nil, jobhost.Invalid("headers", "", "%.60q is not the name of a header field", name)
		}
		for _, value := range h[name] {
			if !isFieldValue(value) {
				return nil, jobhost.Invalid("headers", "leave out control characters, such as ends of lines", "the value of %.60s is not that of a header field", name)
			}
			size += len(name) + len(value) + len(": \r\n")
			count++
		}
		if key := http.CanonicalHeaderKey(name); !isOwn(key) {
			clean[key] = append(clean[key], h[name]...)
		}
	}
	if size > MaxHeaderBytes || count > MaxHeaders {
		return nil, &jobhost.Error{
			Code: jobhost.CodeTooLarge, Field: "headers",
			Message: fmt.Sprintf("a header of %d fields and %d bytes is over the limit of %d and %d", count, size, MaxHeaders, MaxHeaderBytes),
		}
	}
	for _, name := range named(h) {
		delete(clean, name)
	}
	return clean, nil
}

// isOwn reports whether a field, by its canonical name, can't be set by authors.
// Some servers read an underscore as a dash.
func isOwn(key string) bool {
	if strings.Contains(key, "_") {
		key = http.CanonicalHeaderKey(strings.ReplaceAll(key, "_", "-"))
	}
	return ownHeaders[key] || strings.HasPrefix(key, "X-Forwarded-") || strings.HasPrefix(key, ":")
}

// named returns the fields that Connection lists as belonging to the connection.
func named(h http.Header) []string {
	var names []string
	for key, values := range h {
		if http.CanonicalHeaderKey(key) == "Connection" {
			names = append(names, listed(values)...)
		}
	}
	return names
}

// listed splits the values of a field into the field names that they list.
func listed(values []string) []string {
	var names []string
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// forReader removes the fields that concern only the connection from the header
// of a response. net/http has made its names canonical.
func forReader(h http.Header) {
	for key, values := range h { // the header is mostly shorter than the list of what to remove
		switch key {
		case "Connection":
			for _, name := range listed(values) {
				delete(h, name)
			}
			delete(h, key)
		case "Keep-Alive", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			delete(h, key)
		}
	}
}

// isToken reports whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// secretWords mark a field as secret if its name contains one of them.
var secretWords = []string{"auth", "cookie", "token", "secret", "password", "passwd", "credential", "session", "signature", "key"}

// isSecret reports whether a field is meant only for the origin that it was sent to.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" {
		return false
	}
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// dropSecrets removes the fields that must not reach another origin.
func dropSecrets(h http.Header) http.Header {
	kept := h.Clone()
	maps.DeleteFunc(kept, func(name string, _ []string) bool { return isSecret(name) })
	return kept
}

// dropBody removes the fields that describe a body that is no longer sent.
func dropBody(h http.Header) http.Header {
	kept := h.Clone()
	maps.DeleteFunc(kept, func(name string, _ []string) bool { return strings.HasPrefix(name, "Content-") })
	return kept
}
