package netproxy

import (
	"io"
	"net/http"
	"strings"

	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/guard"
)

var _ guard.Watcher = (*exchange)(nil)

// maxDrained is how much of a redirect's body is read so that its connection can
// be reused.
const maxDrained = 4 << 10

// followRedirects sends the request, and again to where redirects lead, until there is a response to return.
func (x *exchange) followRedirects() (*http.Response, *fault) {
	for {
		resp, f := x.sendHop()
		if f != nil {
			return nil, f
		}
		location := resp.Header.Get("Location")
		if !isRedirect(resp.StatusCode) || location == "" || x.limit() == 0 {
			return resp, nil
		}
		if f := x.follow(resp.StatusCode, location); f != nil {
			_ = resp.Body.Close()
			return nil, f
		}
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		_ = resp.Body.Close()
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// limit returns how many redirects are followed.
func (x *exchange) limit() int {
	if x.req.redirects != nil {
		return min(*x.req.redirects, x.client.redirects)
	}
	return x.client.redirects
}

// follow makes a redirect the next hop, which is judged like any other when it is sent.
func (x *exchange) follow(status int, location string) *fault {
	if x.hop >= x.limit() {
		return &fault{kind: KindRedirect, code: CodeTooMany, message: "the server redirects too often", limit: LimitRedirects}
	}
	location, _, _ = strings.Cut(location, "#")
	to, err := x.target.Parse(location)
	if err != nil {
		return &fault{code: CodeProtocol, message: "the server redirects to what is not a URL"}
	}
	u, text, target, err := httpurl.ParseTarget(to.String())
	if err != nil {
		message, _ := urlFault(err)
		return &fault{code: CodeProtocol, message: "the server redirects to a place that is not asked: " + message}
	}
	before := x.url
	x.urls = append(x.urls, x.text)
	x.hop++
	x.url, x.text, x.target = u, text, target
	if method := redirectMethod(status, x.method); method != x.method {
		x.method, x.body, x.header, x.hostHeader = method, nil, dropBody(x.header), dropBody(x.hostHeader)
	}
	if !sameOrigin(before, u) {
		x.header, x.hostHeader = dropSecrets(x.header), nil
	}
	for _, url := range x.urls {
		if url == text && x.method == http.MethodGet {
			return &fault{kind: KindRedirect, code: CodeRecursive, message: "the server redirects in a circle"}
		}
	}
	return nil
}

// redirectMethod returns the method after a redirect (RFC 9110, 15.4): a POST
// becomes a GET with 301 and 302 too, as in all common clients.
func redirectMethod(status int, method string) string {
	switch {
	case status == http.StatusSeeOther && method != http.MethodHead,
		method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound):
		return http.MethodGet
	}
	return method
}

func sameOrigin(a, b httpurl.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host && a.Port == b.Port
}
