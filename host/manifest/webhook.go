package manifest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/webhook"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Webhook is the section [webhook].
type Webhook struct {
	webhook.Settings
	// Secrets are where Settings.Keys come from, in their order.
	Secrets []Secret
}

// Bounds of the lists of [webhook].
const (
	maxRules       = 1000
	maxPrivate     = 100
	maxWebhookKeys = 10 // each makes every request longer by 48 bytes
)

func defaultWebhook() Webhook { return Webhook{Settings: webhook.DefaultSettings()} }

// webhook reads the section [webhook].
func (r *reader) webhook(doc map[string]any) *Webhook {
	path := []string{"webhook"}
	table, given := r.table(doc, nil, "webhook")
	if !given {
		return nil
	}
	w, before := defaultWebhook(), len(r.faults)
	fill(r, path, table, webhookFields(r.secret), &w, "retry")
	if retry, ok := r.table(table, path, "retry"); ok {
		r.retry([]string{"webhook", "retry"}, retry, &w.Retry)
	}
	if len(r.faults) > before {
		return &w // faults that follow from it would be reported too
	}
	joined, _ := w.Check().(interface{ Unwrap() []error })
	if joined == nil {
		return &w
	}
	for _, err := range joined.Unwrap() {
		field := ""
		if e, ok := errors.AsType[*jobhost.Error](err); ok {
			field = e.Field
		}
		if _, stands := table[field]; stands {
			r.faultValue(at(path, field), plain(err))
		} else {
			r.faultKey(path, path, plain(err).Error(), jobhost.HintOf(err))
		}
	}
	return &w
}

// plain returns an error without its field, which the fault names, and its cause.
func plain(err error) error {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return &jobhost.Error{Code: e.Code, Message: e.Message, Hint: e.Hint}
	}
	return err
}

// webhookFields reads secrets with secret, which showing does without.
func webhookFields(secret func(any) (Secret, error)) []field[Webhook] {
	type f = field[Webhook]
	return []f{
		{
			name: "allow", kind: "list of rules", meaning: "URLs that may be posted to, such as `https://hooks.example.com/*`: see below; at most 1000. Callbacks to others are refused.",
			bind: func(_ string, w *Webhook) setting {
				return list(&w.Policy.Allow, maxRules, "https://hooks.example.com/*", policy.ParseRule)
			},
		},
		allowPrivate(func(w *Webhook) *policy.Policy { return &w.Policy }),
		{
			name: "secrets", kind: "list of `{ env = NAME }` or `{ file = PATH }`", meaning: "Keys that sign the messages, each with a signature of its own, so that a new one can be added before the old one goes: `whsec_` and 24 to 64 bytes as base64. At least one unless nothing is allowed, at most 10.",
			bind: func(dir string, w *Webhook) setting { return webhookSecrets(dir, w, secret) },
		},
		{
			name: "dead", kind: "URL", auto: "none", meaning: "Is notified of each dead letter of every worker. A rule of `allow` must match.",
			bind: func(_ string, w *Webhook) setting {
				return textual(&w.Dead, "https://hooks.example.com/dead", line(httpurl.MaxBytes))
			},
		},
		{
			name: "timeout", kind: kindDuration, meaning: "Longest time of one attempt, from the look-up of the name to the end of the answer; 1ms to 1h.",
			bind: func(_ string, w *Webhook) setting { return duration(&w.Timeout, time.Millisecond, time.Hour) },
		},
		{
			name: "pool_size", kind: kindWhole, meaning: "Deliveries that are under way at the same time; 1 to 4096.",
			bind: func(_ string, w *Webhook) setting { return whole(&w.PoolSize, 1, maxPoolSize) },
		},
		{
			name: "per_host", kind: kindWhole, meaning: "Deliveries to one receiver, as scheme, host and port name it, that are under way at the same time; 0 = only `pool_size` bounds them.",
			bind: func(_ string, w *Webhook) setting { return whole(&w.PerHost, 0, maxPoolSize) },
		},
		{
			name: "queue_capacity", kind: kindWhole, meaning: "Deliveries that may wait; while they are more, submits with a callback to a URL are answered `exhausted` (429). 1 to 100,000,000.",
			bind: func(_ string, w *Webhook) setting { return whole(&w.QueueCapacity, 1, maxQueue) },
		},
	}
}

// list is a list of texts that mean something.
func list[T fmt.Stringer](p *[]T, most int, example string, parse func(string) (T, error)) setting {
	return setting{
		set: func(v any) error {
			entries, ok := v.([]any)
			if !ok {
				return mismatch(v, "write a list of texts, such as ["+quote(example)+"]")
			}
			if len(entries) > most {
				return wrong("", "%d entries are more than %d", len(entries), most)
			}
			for i, e := range entries {
				s, ok := e.(string)
				if !ok {
					return mismatch(e, "put each entry in quotes")
				}
				t, err := parse(s)
				if err != nil {
					return entry(i, err)
				}
				*p = append(*p, t)
			}
			return nil
		},
		show: func() string {
			quoted := make([]string, len(*p))
			for i, t := range *p {
				quoted[i] = quote(t.String())
			}
			return "[" + strings.Join(quoted, ", ") + "]"
		},
	}
}

// entry says which entry of a list an error is of, without repeating it.
func entry(i int, err error) error {
	return wrong(jobhost.HintOf(err), "entry %d: %s", i+1, plain(err))
}

func webhookSecrets(dir string, w *Webhook, secret func(any) (Secret, error)) setting {
	return setting{
		set: func(v any) error {
			var refs []any
			switch v := v.(type) {
			case []any:
				refs = v
			case []map[string]any:
				for _, table := range v {
					refs = append(refs, table)
				}
			default:
				return wrong(`write a list, such as [{ env = "NAME" }]; the secret itself must not stand in the manifest`, "this is not a list of secrets")
			}
			if len(refs) > maxWebhookKeys {
				return wrong("", "%d entries are more than %d", len(refs), maxWebhookKeys)
			}
			for i, ref := range refs {
				s, err := secret(ref)
				if err != nil {
					return entry(i, err)
				}
				key, err := webhook.ParseKey(s.Reveal())
				if err != nil {
					return entry(i, err)
				}
				w.Secrets, w.Keys = append(w.Secrets, s), append(w.Keys, key)
			}
			return nil
		},
		show: func() string {
			refs := make([]string, len(w.Secrets))
			for i, s := range w.Secrets {
				refs[i] = showSecret(dir, s)
			}
			return "[" + strings.Join(refs, ", ") + "]"
		},
	}
}

func (m *Manifest) showWebhook(b *strings.Builder) {
	b.WriteString("\n[webhook]\n")
	showFields(b, m.Dir, webhookFields(nil), m.Webhook)
	b.WriteString("\n[webhook.retry]\n")
	showFields(b, m.Dir, retryFields(), &m.Webhook.Retry)
}
