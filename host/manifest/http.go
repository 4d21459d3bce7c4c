package manifest

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime"
)

// HTTP is a section [worker.NAME.http]: where a worker may go over HTTP. Without
// one it may go nowhere.
type HTTP struct {
	config.HTTP
	// Inject are where Config.Secrets come from, in their order.
	Inject []Injection
	// OpenRequests, Requests and RequestBytes bound one attempt.
	OpenRequests, Requests int
	RequestBytes           int64
}

// Injection is a field of the header that the host adds.
type Injection struct {
	Header string
	Prefix string // before the secret, such as "Bearer "
	Value  Secret
	For    []policy.Rule
}

const (
	maxInjections  = 100
	maxConnections = 100_000
	maxProxyBytes  = 2048
)

func defaultHTTP() *HTTP {
	limits := runtime.DefaultLimits()
	return &HTTP{
		HTTP: config.HTTP{
			Config: netproxy.Config{
				Timeout: netproxy.DefaultTimeout, IdleTimeout: netproxy.DefaultIdleTimeout, ConnectTimeout: 5 * time.Second,
				MaxRequestBytes: netproxy.DefaultMaxRequestBytes, MaxResponseBytes: netproxy.DefaultMaxResponseBytes,
				MaxRedirects: new(netproxy.DefaultMaxRedirects), MaxRetries: new(netproxy.DefaultMaxRetries),
				ConnsPerHost: netproxy.DefaultConnsPerHost,
			},
			MaxConnections: netproxy.DefaultMaxConnections,
			MaxBuffered:    netproxy.DefaultMaxBuffered,
		},
		OpenRequests: limits.OpenRequests,
		Requests:     limits.Requests,
		RequestBytes: limits.RequestBytes,
	}
}

// http reads [worker.NAME.http].
func (r *reader) http(path []string, table map[string]any) *HTTP {
	h := defaultHTTP()
	fill(r, path, table, httpFields(r.secret), h, "breaker")
	if breaker, ok := r.table(table, path, "breaker"); ok {
		h.Destinations.Breaker = jobhost.DefaultBreaker("destination")
		h.Destinations.Breaker.WhenOpen = jobhost.FailWhenOpen
		fill(r, append(path, "breaker"), breaker, destinationBreakerFields(), &h.Destinations.Breaker)
	}
	return h
}

// destinationBreakerFields are those of a worker's breaker that mean something
// for the origins of requests.
func destinationBreakerFields() (fields []field[jobhost.BreakerPolicy]) {
	for _, f := range breakerFields() {
		if f.name != "key" && f.name != "when_open" {
			fields = append(fields, f)
		}
	}
	return fields
}

// allowPrivate is what a policy lets be dialled beside the public internet.
func allowPrivate[T any](of func(*T) *policy.Policy) field[T] {
	return field[T]{
		name: "allow_private", kind: "list of ranges", meaning: "Addresses that may be dialled although they are not of the public internet, such as `10.0.0.0/8` or `127.0.0.1`; at most 100. A rule of `allow` must match too.",
		bind: func(_ string, t *T) setting {
			return list(&of(t).AllowPrivate, maxPrivate, "10.0.0.0/8", policy.ParsePrefix)
		},
	}
}

// httpFields reads secrets with secret, which showing does without.
func httpFields(secret func(any) (Secret, error)) []field[HTTP] { //nolint:revive // it is a table, however long
	type f = field[HTTP]
	return []f{
		{
			name: "allow", kind: "list of rules", meaning: "Where requests may go, such as `https://api.example.com` or `GET https://*.example.org:8443/v1/*`: see docs/netproxy.md; at most 1000.",
			bind: func(_ string, h *HTTP) setting {
				return list(&h.Policy.Allow, maxRules, "https://api.example.com", policy.ParseRule)
			},
		},
		allowPrivate(func(h *HTTP) *policy.Policy { return &h.Policy }),
		{
			name: "inject", kind: "list of tables", meaning: "Secrets that the host adds to requests, so that the plugin never has them: `{ header = \"Authorization\", prefix = \"Bearer \", value = { env = \"TOKEN\" }, for = [\"https://api.example.com\"] }`; at most 100.",
			bind: func(dir string, h *HTTP) setting { return injections(dir, h, secret) },
		},
		{
			name: "timeout", kind: kindDuration, meaning: "Longest time of one request, from the look-up of the name to the last byte, redirects and retries included; 1ms to 1d. The attempt's own deadline holds besides.",
			bind: func(_ string, h *HTTP) setting {
				return duration(&h.Timeout, time.Millisecond, jobhost.MaxTimeout)
			},
		},
		{
			name: "connect_timeout", kind: kindDuration, meaning: "Longest time to make a connection; 1ms to 1h.",
			bind: func(_ string, h *HTTP) setting { return duration(&h.ConnectTimeout, time.Millisecond, time.Hour) },
		},
		{
			name: "idle_timeout", kind: kindDuration, meaning: "Longest pause within a response; 1ms to 1h.",
			bind: func(_ string, h *HTTP) setting { return duration(&h.IdleTimeout, time.Millisecond, time.Hour) },
		},
		{
			name: "max_request_bytes", kind: kindSize, meaning: "Largest body of a request, 1B to 1GiB.",
			bind: func(_ string, h *HTTP) setting { return size(&h.MaxRequestBytes, 1, 1<<30) },
		},
		{
			name: "max_response_bytes", kind: kindSize, meaning: "Largest body of a response, decoded; 1B to 1GiB.",
			bind: func(_ string, h *HTTP) setting { return size(&h.MaxResponseBytes, 1, 1<<30) },
		},
		{
			name: "max_redirects", kind: kindWhole, meaning: "Redirects that are followed, each judged as a request of its own; 0 = they are given to the plugin. At most 20.",
			bind: func(_ string, h *HTTP) setting { return whole(h.MaxRedirects, 0, 20) },
		},
		{
			name: "retries", kind: kindWhole, meaning: "How often a request is sent again that reached no server, or may be sent twice; 0 to 10.",
			bind: func(_ string, h *HTTP) setting { return whole(h.MaxRetries, 0, 10) },
		},
		{
			name: "http2", kind: kindFlag, meaning: "Servers may speak HTTP/2.",
			bind: func(_ string, h *HTTP) setting { return not(&h.HTTP1) },
		},
		{
			name: "proxy", kind: "URL", auto: "none; `HTTP_PROXY` is ignored", meaning: "Proxy that is asked for all connections, such as `http://proxy.example:3128`. It sees the names and is trusted to refuse private addresses.",
			bind: func(_ string, h *HTTP) setting { return proxy(&h.Proxy) },
		},
		{
			name: "connections_per_host", kind: kindWhole, meaning: "Connections to one host; requests beyond wait. 1 to 10,000.",
			bind: func(_ string, h *HTTP) setting { return whole(&h.ConnsPerHost, 1, 10_000) },
		},
		{
			name: "max_connections", kind: kindWhole, meaning: "Requests of all the worker's jobs that are under way at the same time; further ones are answered −4. 1 to 100,000.",
			bind: func(_ string, h *HTTP) setting { return whole(&h.MaxConnections, 1, maxConnections) },
		},
		{
			name: "max_buffered", kind: kindSize, meaning: "Memory of all bodies that are under way at the same time; 1MiB to 1TiB.",
			bind: func(_ string, h *HTTP) setting { return size(&h.MaxBuffered, 1<<20, 1<<40) },
		},
		{
			name: "max_open", kind: kindWhole, meaning: "Requests that one attempt has open at the same time; 1 to 4,000.",
			bind: func(_ string, h *HTTP) setting { return whole(&h.OpenRequests, 1, 4000) },
		},
		{
			name: "max_requests", kind: kindWhole, meaning: "Requests that one attempt sends or defers; 1 to 1,000,000.",
			bind: func(_ string, h *HTTP) setting { return whole(&h.Requests, 1, 1_000_000) },
		},
		{
			name: "max_bytes", kind: kindSize, meaning: "Bodies that one attempt sends and receives, together; 1KiB to 1TiB.",
			bind: func(_ string, h *HTTP) setting { return size(&h.RequestBytes, 1<<10, 1<<40) },
		},
		{
			name: "rate_limit", kind: "rate", auto: "no limit", meaning: "Requests to one origin, such as `10/s`; those over it wait.",
			bind: func(_ string, h *HTTP) setting { return rate(&h.Destinations.Rate) },
		},
		{
			name: "rate_burst", kind: kindWhole, auto: "what `rate_limit` allows in 100ms, at least 1", meaning: "Requests to one origin that may begin at once after a rest; 1 to 1,000,000.",
			bind: func(_ string, h *HTTP) setting {
				return wholeOrLeft(&h.Destinations.Burst, jobhost.MaxRateCount)
			},
		},
	}
}

// not is a flag that stands the other way round in the code.
func not(p *bool) setting {
	yes := !*p
	b := boolean(&yes)
	return setting{
		set: func(v any) error {
			err := b.set(v)
			*p = !yes
			return err
		},
		show: func() string { yes = !*p; return b.show() },
	}
}

func proxy(p **url.URL) setting {
	return parsed("http://proxy.example:3128",
		func(s string) error {
			u, err := url.Parse(s)
			if err != nil || len(s) > maxProxyBytes || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
				u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
				return wrong("write it as http://proxy.example:3128", "this is not the URL of a proxy")
			}
			*p = u
			return nil
		},
		func() string {
			if *p == nil {
				return ""
			}
			return (*p).String()
		})
}

// injections is the list of fields that the host adds.
func injections(dir string, h *HTTP, secret func(any) (Secret, error)) setting {
	return setting{
		set: func(v any) error {
			tables, err := tablesOf(v, `{ header = "Authorization", value = { env = "TOKEN" }, for = ["https://api.example.com"] }`)
			if err != nil {
				return err
			}
			if len(tables) > maxInjections {
				return wrong("", "%d entries are more than %d", len(tables), maxInjections)
			}
			for i, table := range tables {
				one, err := injection(table, secret)
				if err == nil {
					one.header(h)
					err = h.Config.Check()
				}
				if err != nil {
					return entry(i, err)
				}
			}
			return nil
		},
		show: func() string {
			if len(h.Inject) == 0 {
				return "[]"
			}
			shown := make([]string, len(h.Inject))
			for i, one := range h.Inject {
				shown[i] = one.show(dir)
			}
			return "[" + strings.Join(shown, ", ") + "]"
		},
	}
}

// tablesOf returns a list of tables, however it is written.
func tablesOf(v any, example string) ([]map[string]any, error) {
	switch v := v.(type) {
	case []map[string]any:
		return v, nil
	case []any:
		tables := make([]map[string]any, len(v))
		for i, e := range v {
			table, ok := e.(map[string]any)
			if !ok {
				return nil, mismatch(e, "write a list of tables, such as ["+example+"]")
			}
			tables[i] = table
		}
		return tables, nil
	}
	return nil, mismatch(v, "write a list of tables, such as ["+example+"]")
}

// injection reads one table.
func injection(table map[string]any, secret func(any) (Secret, error)) (one Injection, err error) {
	rules := []any{}
	for key, v := range table {
		ok := true
		switch key {
		case "header":
			one.Header, ok = v.(string)
		case "prefix":
			one.Prefix, ok = v.(string)
		case "for":
			rules, ok = v.([]any)
		case "value":
			if one.Value, err = secret(v); err != nil {
				return one, err
			}
		default:
			return one, wrong("the keys are header, prefix, value and for", "%s is not a key of an entry", text.Quote(key, text.Short))
		}
		if !ok {
			return one, wrong("header and prefix are text, for is a list of rules", "%s has the wrong type", key)
		}
	}
	if one.Header == "" || one.Value.Reveal() == "" || len(rules) == 0 {
		return one, wrong("", "header, value and for must be given")
	}
	for _, v := range rules {
		text, _ := v.(string)
		rule, err := policy.ParseRule(text)
		if err != nil {
			return one, err
		}
		one.For = append(one.For, rule)
	}
	return one, nil
}

// header puts the field where the client finds it.
func (one *Injection) header(h *HTTP) {
	h.Inject = append(h.Inject, *one)
	h.Secrets = append(h.Secrets, netproxy.Secret{Header: one.Header, Value: one.Prefix + one.Value.Reveal(), For: one.For})
}

func (one *Injection) show(dir string) string {
	rules := make([]string, len(one.For))
	for i, r := range one.For {
		rules[i] = quote(r.String())
	}
	prefix := ""
	if one.Prefix != "" {
		prefix = ", prefix = " + quote(one.Prefix)
	}
	return fmt.Sprintf("{ header = %s%s, value = %s, for = [%s] }", quote(one.Header), prefix, showSecret(dir, one.Value), strings.Join(rules, ", "))
}
