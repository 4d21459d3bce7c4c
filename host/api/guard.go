package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// guard is what stands between the network and the routes.
type guard struct {
	token        [sha256.Size]byte
	openReads    bool
	guardMetrics bool
	hosts        map[string]bool
	origins      *http.CrossOriginProtection
	backoff      *backoff
}

func newGuard(cfg Config) guard {
	g := guard{
		token:        sha256.Sum256([]byte(cfg.Token)),
		openReads:    cfg.OpenReads,
		guardMetrics: cfg.GuardMetrics,
		hosts:        map[string]bool{"localhost": true},
		origins:      http.NewCrossOriginProtection(),
		backoff:      newBackoff(),
	}
	for _, host := range cfg.AllowedHosts {
		g.hosts[strings.ToLower(host)] = true
	}
	return g
}

// The header values that every response has. They are never changed.
var (
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	sameOrigin = []string{"same-origin"}
	nothing    = []string{"default-src 'none'; frame-ancestors 'none'"}
)

func secure(h http.Header) {
	h["Cache-Control"] = noStore
	h["Content-Security-Policy"] = nothing
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	h["Referrer-Policy"] = noReferrer
	h["X-Content-Type-Options"] = noSniff
}

// authorize checks all that doesn't depend on what is asked of a route: that the
// Host header names this server, that no other site's page sent the request,
// the token, the parameters of the query and the type of the body. In this
// order: a stranger learns nothing about the later ones.
func (a *API) authorize(w http.ResponseWriter, r *http.Request, to *route) error {
	if to.access != open {
		if err := a.guard.checkHost(r.Host); err != nil {
			return err
		}
		if err := a.guard.checkOrigin(r); err != nil {
			return err
		}
		if err := a.checkToken(w, r, to.access); err != nil {
			return err
		}
	}
	if err := checkQuery(r.URL.RawQuery, to); err != nil {
		return err
	}
	return checkBody(r, to.body)
}

// checkHost keeps out pages whose name an attacker lets point here (DNS
// rebinding): to the browser they are of the same origin.
func (g *guard) checkHost(host string) error {
	name := hostname(host)
	if g.hosts[name] || g.hosts[strings.ToLower(name)] {
		return nil
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest, &jobhost.Error{
		Code:    jobhost.CodeDenied,
		Message: "this server does not go by the name in the Host header",
		Hint:    "add the name to allowed_hosts in the manifest, or use 127.0.0.1",
	})
}

// hostname returns a Host header without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// checkOrigin keeps out requests that a browser made for another site's page.
// Such a page cannot read the answers, but each stream it opens is a slot less.
// Following a link here is fine.
func (g *guard) checkOrigin(r *http.Request) error {
	site := r.Header.Get("Sec-Fetch-Site")
	foreign := (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
	if !foreign && g.origins.Check(r) == nil {
		return nil
	}
	return &jobhost.Error{
		Code:    jobhost.CodeDenied,
		Message: "pages of other sites may not call this server",
	}
}

// checkToken asks for the token where it is needed. One that is given is
// always looked at, so that a wrong one doesn't go unnoticed.
func (a *API) checkToken(w http.ResponseWriter, r *http.Request, need access) error {
	given := r.Header["Authorization"]
	if len(given) == 0 && a.guard.free(r, need) {
		return nil
	}
	if len(given) == 1 && a.guard.matches(given[0]) {
		return nil
	}
	if len(given) > 0 {
		blocked, first := a.guard.backoff.failed(r.RemoteAddr)
		if first {
			a.log.Warn("wrong token", "source", sourceOf(r.RemoteAddr))
		}
		if blocked > 0 {
			return &jobhost.Error{
				Code: jobhost.CodeExhausted, Message: "there were too many wrong tokens from this address",
				Hint: "check the token before you try again", RetryAfter: blocked,
			}
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="jobhost"`)
	return refuse(http.StatusUnauthorized, &jobhost.Error{
		Code:    jobhost.CodeDenied,
		Field:   jobhost.FieldToken,
		Message: "this needs the token",
		Hint:    `send the header "Authorization: Bearer TOKEN"; the token is in the host's token file; commands take --token-file`,
	})
}

// free reports whether a call needs no token.
func (g *guard) free(r *http.Request, need access) bool {
	switch need {
	case open:
		return true
	case figures:
		return !g.guardMetrics
	case reads:
		return g.openReads && fromHere(r)
	case writes:
	}
	return false
}

// matches compares digests, so that the time it takes reveals nothing about how
// much of the token was right or how long it is.
func (g *guard) matches(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	digest := sha256.Sum256([]byte(token))
	same := subtle.ConstantTimeCompare(digest[:], g.token[:]) == 1
	return same && strings.EqualFold(scheme, "Bearer")
}

// fromHere reports whether a request comes from this machine and has no mark of a
// proxy. Many proxies leave none, so this is only for hosts that have none in front.
func fromHere(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	return true
}

// checkQuery refuses parameters that are unknown or given twice; only labels may
// be. What changes something takes no empty ones either: a selection that a
// script left empty by mistake must not be taken for everything.
func checkQuery(raw string, to *route) error {
	if raw == "" {
		return nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the query cannot be read", Cause: err}
	}
	for name, v := range values {
		if !slices.ContainsFunc(to.query, func(p param) bool { return p.name == name }) {
			names := make([]string, len(to.query))
			for i, p := range to.query {
				names[i] = p.name
			}
			return wire.Unknown("parameter", name, names)
		}
		if len(v) > 1 && name != labelParam {
			return &jobhost.Error{Code: jobhost.CodeInvalid, Field: name, Message: "the parameter is given twice"}
		}
		if to.access == writes && slices.Contains(v, "") {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: name, Message: "the parameter is empty", Hint: "leave it out, or give it a value",
			}
		}
	}
	return nil
}

// maybeJSON is the type of bodies that may be left out.
const maybeJSON = wire.JSON + "?"

// checkBody checks that a body is of the right type, or not there.
func checkBody(r *http.Request, want string) error {
	if want == "" {
		if r.ContentLength == 0 {
			return nil
		}
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "this takes no body"}
	}
	if want == maybeJSON {
		if r.ContentLength == 0 {
			return nil
		}
		want = wire.JSON
	}
	types := r.Header["Content-Type"]
	if len(types) == 1 && (types[0] == want || isType(types[0], want)) && r.Header.Get("Content-Encoding") == "" {
		return nil
	}
	return refuse(http.StatusUnsupportedMediaType, &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Field:   "Content-Type",
		Message: "the body is not " + want,
		Hint:    `send the header "Content-Type: ` + want + `", and the body without compression`,
	})
}

func isType(header, want string) bool {
	name, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	return err == nil && name == want && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
