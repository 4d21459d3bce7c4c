package netproxy

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Secret is a header field that the client adds to requests for some
// destinations, so that the authors of the requests need not know it.
type Secret struct {
	Header string // the field, such as Authorization
	Value  string // all of it, such as "Bearer …"
	// For says which requests get it. A redirect to a destination without a
	// match drops it.
	For []policy.Rule
}

// redacted replaces a secret wherever one would be visible.
const redacted = "[secret]"

// String returns the field without its value.
func (s Secret) String() string { return s.Header + ": " + redacted }

// GoString returns the field without its value.
func (s Secret) GoString() string { return s.String() }

// LogValue returns the field without its value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the field without its value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Secret) check() error {
	switch {
	case !isToken(s.Header) || ownHeaders[http.CanonicalHeaderKey(s.Header)]:
		return jobhost.Invalid("secret", "", "%.60q is not a field that can be added", s.Header)
	case !isFieldValue(s.Value) || strings.TrimSpace(s.Value) == "":
		return jobhost.Invalid("secret", "", "the secret for %s is empty, or not the value of a header field", s.Header)
	case len(s.For) == 0:
		return jobhost.Invalid("secret", "name the places that it is for", "the secret for %s is for no place", s.Header)
	}
	return nil
}

// secrets are those of a client.
type secrets []Secret

func newSecrets(list []Secret) (secrets, error) {
	all := make(secrets, 0, len(list))
	for _, s := range list {
		if err := s.check(); err != nil {
			return nil, err
		}
		s.Header, s.For = http.CanonicalHeaderKey(s.Header), slices.Clone(s.For)
		all = append(all, s)
	}
	return all, nil
}

// inject sets the secrets for a destination, replacing fields of the same name. h
// is of one hop, so it holds no secrets for other destinations.
func (all secrets) inject(h http.Header, method string, u httpurl.URL) {
	for _, s := range all {
		if slices.ContainsFunc(s.For, func(r policy.Rule) bool { return r.Match(method, u) }) {
			h[s.Header] = []string{s.Value}
		}
	}
}

// redact removes the values of secrets from the header of a response.
func (all secrets) redact(h http.Header) {
	for _, s := range all {
		for _, values := range h {
			for i, value := range values {
				values[i] = s.redact(value)
			}
		}
	}
}

// redact removes the value, and also its last word alone: the token after "Bearer".
func (s Secret) redact(text string) string {
	text = strings.ReplaceAll(text, s.Value, redacted)
	if i := strings.LastIndexByte(s.Value, ' '); i >= 0 && len(s.Value)-i > 8 {
		text = strings.ReplaceAll(text, s.Value[i+1:], redacted)
	}
	return text
}

// checkSecrets is part of [Config.Check].
func checkSecrets(list []Secret) (errs []error) {
	for _, s := range list {
		if err := s.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
