package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

// Show returns the manifest as TOML with every default filled in. Secrets
// stand there as references, never as what they are, and paths as
// [Manifest.Dir] sees them: parsed again in that folder it gives the same
// manifest.
func (m *Manifest) Show() []byte {
	var b strings.Builder
	b.WriteString("[host]\n")
	showFields(&b, m.Dir, hostFields(), &m.Host)
	for i := range m.Workers {
		m.showWorker(&b, &m.Workers[i])
	}
	for i := range m.Schedules {
		m.showSchedule(&b, &m.Schedules[i])
	}
	m.showFibers(&b)
	m.showWorkflows(&b)
	if m.Webhook != nil {
		m.showWebhook(&b)
	}
	m.showCluster(&b)
	m.showPayload(&b)
	return []byte(b.String())
}

func (m *Manifest) showWorker(b *strings.Builder, w *Worker) {
	section := "worker." + showKey(w.Name)
	fmt.Fprintf(b, "\n[%s]\n", section)
	showFields(b, m.Dir, workerFields(), w)
	fmt.Fprintf(b, "\n[%s.retry]\n", section)
	showFields(b, m.Dir, retryFields(), &w.Retry)
	fmt.Fprintf(b, "\n[%s.retention]\n", section)
	showFields(b, m.Dir, retentionFields(), w.Retention)
	if w.Breaker != (jobhost.BreakerPolicy{}) {
		fmt.Fprintf(b, "\n[%s.breaker]\n", section)
		showFields(b, m.Dir, breakerFields(), &w.Breaker)
	}
	if w.HTTP != nil {
		fmt.Fprintf(b, "\n[%s.http]\n", section)
		showFields(b, m.Dir, httpFields(nil), w.HTTP)
		if w.HTTP.Destinations.Breaker != (jobhost.BreakerPolicy{}) {
			fmt.Fprintf(b, "\n[%s.http.breaker]\n", section)
			showFields(b, m.Dir, destinationBreakerFields(), &w.HTTP.Destinations.Breaker)
		}
	}
	if len(w.Env) > 0 {
		fmt.Fprintf(b, "\n[%s.env]\n", section)
		for _, name := range slices.Sorted(maps.Keys(w.Env)) {
			fmt.Fprintf(b, "%s = %s\n", showKey(name), quote(w.Env[name]))
		}
	}
	if len(w.Config) > 0 {
		fmt.Fprintf(b, "\n[%s.config]\n", section)
		for _, name := range slices.Sorted(maps.Keys(w.Config)) {
			fmt.Fprintf(b, "%s = %s\n", showKey(name), quote(w.Config[name]))
		}
	}
	if len(w.Secrets) > 0 {
		fmt.Fprintf(b, "\n[%s.secrets]\n", section)
		for _, name := range slices.Sorted(maps.Keys(w.Secrets)) {
			fmt.Fprintf(b, "%s = %s\n", showKey(name), showSecret(m.Dir, w.Secrets[name]))
		}
	}
}

func showSecret(dir string, s Secret) string {
	switch {
	case s.env != "":
		return "{ env = " + quote(s.env) + " }"
	case s.file != "":
		return "{ file = " + quote(showPath(dir, s.file)) + " }"
	}
	return quote(hidden) // from NewSecret: there is nothing to refer to
}

func showFields[T any](b *strings.Builder, dir string, fields []field[T], t *T) {
	for _, f := range fields {
		if value := f.bind(dir, t).show(); value != "" {
			fmt.Fprintf(b, "%s = %s\n", f.name, value)
		}
	}
}

func showKey(key string) string {
	if bare(key) {
		return key
	}
	return quote(key)
}
