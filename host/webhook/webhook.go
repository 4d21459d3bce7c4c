// Package webhook notifies HTTP receivers of what happens to jobs: it creates the
// messages, signs them as the Standard Webhooks specification says, and posts them to
// URLs that a policy allows. A delivery is an ordinary job, so it is durable, retried and
// visible; this package is its worker.
package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/guard"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/builtin"
)

// Settings say where messages may go and how they are delivered.
type Settings struct {
	// Policy says which URLs may be posted to.
	Policy policy.Policy
	// Keys sign the messages, each with its own signature, so that receivers can migrate
	// from one to the next.
	Keys []Key
	// Dead is the URL that is notified of each dead letter; empty = none.
	Dead string
	// Timeout bounds one attempt, from resolving the receiver's name to the end of its
	// answer.
	Timeout time.Duration
	// PoolSize is how many deliveries may run at a time, PerHost how many to one
	// receiver; 0 = no other bound than PoolSize.
	PoolSize, PerHost int
	// QueueCapacity bounds the waiting deliveries: above it, jobs with a callback to a
	// URL are refused.
	QueueCapacity int
	Retry         jobhost.RetryPolicy
}

// DefaultSettings returns the settings for manifests that don't say otherwise. The twelve
// attempts span 23 hours: after 5 s, 15 s, 45 s and so on, and every six hours in the
// end.
func DefaultSettings() Settings {
	retry := jobhost.DefaultRetry()
	retry.MaxAttempts, retry.Initial, retry.Multiplier, retry.Max = 12, 5*time.Second, 3, 6*time.Hour
	return Settings{Timeout: 30 * time.Second, PoolSize: 16, PerHost: 4, QueueCapacity: 100_000, Retry: retry}
}

// Check reports all faults of the settings, as errors of type [*jobhost.Error] joined
// into one. Fields have the names of the manifest.
func (s *Settings) Check() error {
	errs := []error{s.Retry.Check()}
	if len(s.Keys) == 0 && (len(s.Policy.Allow) > 0 || s.Dead != "") {
		errs = append(errs, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "secrets", Message: "there is no secret to sign messages with", Hint: newKeyHint,
		})
	}
	if s.Timeout <= 0 {
		errs = append(errs, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "timeout", Message: "the timeout is not positive"})
	}
	if s.Dead != "" {
		errs = append(errs, s.checkDead())
	}
	return errors.Join(errs...)
}

func (s *Settings) checkDead() error {
	u, err := httpurl.Parse(s.Dead)
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "dead", Message: e.Message, Hint: e.Hint}
	}
	err = s.Judge(u)
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		e.Field, e.Message = "dead", "messages to "+u.Origin()+" are not allowed"
	}
	return err
}

// Open returns the worker of the deliveries. Nothing is posted to the addresses that
// forbidden returns, whatever the policy says; nil = there are none.
func (s *Settings) Open(forbidden func() []netip.AddrPort) runtime.Plugin {
	transport := guard.New(guard.Config{Policy: s.Policy, IdlePerHost: s.PerHost, Forbidden: forbidden})
	p := &poster{transport: transport, keys: s.Keys}
	return builtin.New(p.run, func() error { transport.CloseIdleConnections(); return nil })
}

// Judge returns nil if messages may be posted to a URL, as far as its text shows, and
// otherwise an error with code denied that says how the manifest could allow it.
func (s *Settings) Judge(u httpurl.URL) error {
	err := s.Policy.Judge(http.MethodPost, u)
	if err == nil {
		return nil
	}
	denied := &jobhost.Error{
		Code: jobhost.CodeDenied, Field: "callback", Message: "callbacks to " + u.Origin() + " are not allowed",
		Hint: `the manifest could allow them: webhook.allow = ["` + u.Origin() + `"]`, Cause: err,
	}
	if special, ok := errors.AsType[*policy.SpecialError](err); ok {
		denied.Hint = `the manifest could allow them: webhook.allow_private = ["` + special.Addr.String() + `"]`
	}
	return denied
}

// delivery is the payload of a delivery job.
type delivery struct {
	URL string `json:"url"`
	// Body is what is posted, byte for byte the same in every attempt.
	Body json.RawMessage `json:"body"`
}

// Ended returns the job that notifies a URL of the end of a job.
func Ended(url string, ended *jobhost.Ended) jobhost.Spec {
	return spec(url, ended.Job, jobhost.Message{Type: jobhost.MessageEnded, Timestamp: ended.EndedAt, Data: ended})
}

// Dead returns the job that notifies a URL of a dead letter.
func Dead(url string, letter *jobhost.DeadLetter) jobhost.Spec {
	return spec(url, letter.Job, jobhost.Message{Type: jobhost.MessageDead, Timestamp: letter.DiedAt, Data: letter})
}

// spec returns the job of a delivery. Scheduling is fair between the origins of
// receivers.
func spec(url, about string, m jobhost.Message) jobhost.Spec {
	var payload []byte
	body, err := json.Marshal(m)
	if err == nil {
		payload, err = json.Marshal(delivery{url, body})
	}
	if err != nil { // none of these types can fail; otherwise the delivery fails visibly
		payload = nil
	}
	turn := url
	if u, err := httpurl.Parse(url); err == nil {
		turn = u.Origin()
	}
	return jobhost.Spec{
		Worker: jobhost.WebhookWorker, Payload: payload, ContentType: "application/json", ConcurrencyKey: turn,
		Labels: map[string]string{jobhost.LabelWebhook: m.Type, jobhost.LabelWebhookJob: about},
	}
}
