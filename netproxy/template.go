package netproxy

import (
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/jobhost/jobhost"
)

// Template makes requests that have something in common. It is immutable and safe
// for concurrent use.
type Template struct {
	base    *url.URL
	header  http.Header
	timeout time.Duration
}

// NewTemplate returns a template: references are resolved against base, an
// absolute URL; "" = none, so that URLs must be absolute. The header is copied.
func NewTemplate(base string, header http.Header, timeout time.Duration) (*Template, error) {
	t := &Template{timeout: timeout}
	if base != "" {
		var r Request
		if err := r.setURL(base); err != nil {
			return nil, err
		}
		t.base = r.target
	}
	var err error
	t.header, err = cleanHeader(header)
	return t, err
}

// New returns a request as spec says, with the template's fields where spec's header has none,
// and the template's timeout if spec has none. spec is not changed.
func (t *Template) New(spec RequestSpec) (*Request, error) {
	header := t.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	given, err := cleanHeader(spec.Header)
	if err != nil {
		return nil, err
	}
	maps.Copy(header, given)
	spec.Header = header
	if spec.Timeout == 0 {
		spec.Timeout = t.timeout
	}
	if t.base != nil {
		ref, err := t.base.Parse(spec.URL)
		if err != nil {
			return nil, jobhost.Invalid("url", "", "this is not a reference to a URL")
		}
		spec.URL = ref.String()
	}
	return NewRequest(spec)
}
