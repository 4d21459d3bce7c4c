package host

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/webhook"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/runtime"
)

// hooks is what the queue knows of webhooks: the settings of the moment.
type hooks struct {
	settings atomic.Pointer[webhook.Settings] // nil = there are none
}

// Judge implements [queue.Webhooks].
func (h *hooks) Judge(u httpurl.URL) error {
	if s := h.settings.Load(); s != nil {
		return s.Judge(u)
	}
	return &jobhost.Error{
		Code: jobhost.CodeDenied, Field: "callback", Message: "callbacks to URLs are not allowed",
		Hint: "the manifest has no section [webhook]; docs/webhooks.md",
	}
}

// Ended implements [queue.Webhooks]. The end of a job whose callback was allowed is delivered
// whatever the settings are by then: the delivery may be held, or fail.
func (*hooks) Ended(url string, ended *jobhost.Ended) jobhost.Spec { return webhook.Ended(url, ended) }

// Dead implements [queue.Webhooks].
func (h *hooks) Dead(letter *jobhost.DeadLetter) (jobhost.Spec, bool) {
	s := h.settings.Load()
	if s == nil || s.Dead == "" {
		return jobhost.Spec{}, false
	}
	return webhook.Dead(s.Dead, letter), true
}

// webhookWorker is the host's own worker that delivers webhooks.
func webhookWorker(s *webhook.Settings) settings {
	return settings{webhook: s, Worker: Worker{
		Name:              jobhost.WebhookWorker,
		Isolation:         runtime.IsolateInstance,
		PoolSize:          s.PoolSize,
		QueueCapacity:     s.QueueCapacity,
		ConcurrencyPerKey: s.PerHost,
		Limits:            runtime.Limits{Timeout: s.Timeout},
		Retry:             s.Retry,
	}}
}

// settingsIn returns the settings of the worker for webhooks, if there is one.
func settingsIn(workers map[string]*worker) *webhook.Settings {
	if w := workers[jobhost.WebhookWorker]; w != nil {
		return w.cfg.webhook
	}
	return nil
}

// checkOwn looks at the host's own workers and that no other has a name of theirs.
func (c *Config) checkOwn() []error {
	var errs []error
	for i := range c.Workers {
		if name := c.Workers[i].Name; strings.HasPrefix(name, jobhost.ReservedWorkers) {
			errs = append(errs, fmt.Errorf("worker %s: names that begin with %s are the host's own", name, jobhost.ReservedWorkers))
		}
	}
	if c.Webhook == nil {
		return errs
	}
	if err := c.Webhook.Check(); err != nil {
		errs = append(errs, fmt.Errorf("webhook: %w", err))
	}
	own := webhookWorker(c.Webhook)
	if err := own.Check(); err != nil {
		errs = append(errs, fmt.Errorf("webhook: %w", err))
	}
	return errs
}
