package manifest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

const docs = "../../docs/manifest.md"

// TestDocs compares each table of docs/manifest.md with the code: every key,
// its type, default and meaning. -update rewrites the tables.
func TestDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	host, worker, schedule := defaultHost("/"), defaultWorker("", 0), defaultSchedule()
	webhook := defaultWebhook()
	breaker := jobhost.DefaultBreaker("")
	fibers, fiber := defaultFibers(), defaultFiber()
	workflows := defaultWorkflowSettings()
	cluster := defaultCluster()
	payloads, payloadStore := defaultPayload(), defaultPayloadStore()
	want := map[string]string{
		"host":              docTable(hostFields(), &host),
		"worker.NAME":       docTable(workerFields(), &worker),
		"worker.NAME.retry": docTable(retryFields(), &worker.Retry),
		"[schedule]":        docTable(scheduleFields(), &schedule),
		"fibers":            docTable(fibersFields(), &fibers),
		"[fiber]":           docTable(fiberFields(), &fiber),
		"fiber.restart":     docTable(restartFields(), &fiber.Restart),
		"workflows":         docTable(workflowsFields(), &workflows),
		"workflow.NAME":     docTable(workflowFields(), &workflowSection{}),
		"cluster":           docTable(clusterFields(), &cluster),
		"payload":           docTable(payloadFields(), &payloads),
		"[payload.store]":   docTable(payloadStoreFields(), &payloadStore),
		"[payload.key]":     docTable(payloadKeyFields(), &PayloadKey{}),

		"workflows.retention":        docTable(workflowRetentionFields(), &workflows.Retention),
		"[workflow.NAME.step]":       docTable(stepFields(), &stepSection{}),
		"workflow.NAME.step.retry":   docTable(stepRetryFields(), &jobhost.StepRetry{}),
		"workflow.NAME.step.breaker": docTable(stepBreakerFields(), &jobhost.StepBreaker{}),

		"webhook":       docTable(webhookFields(nil), &webhook),
		"webhook.retry": docTable(retryFields(), &webhook.Retry),

		"worker.NAME.http":      docTable(httpFields(nil), defaultHTTP()),
		"worker.NAME.breaker":   docTable(breakerFields(), &breaker),
		"worker.NAME.retention": docTable(retentionFields(), worker.Retention),
	}
	text := string(data)
	for section, table := range want {
		found := regexp.MustCompile(`(?m)^### \[` + regexp.QuoteMeta(section) + `\]\n(?:[^|#\n][^\n]*\n|\n)*((?:\|[^\n]*\n)+)`).FindStringSubmatchIndex(text)
		if found == nil {
			t.Fatalf("docs/manifest.md has no table below ### [%s]", section)
		}
		if *update {
			text = text[:found[2]] + table + text[found[3]:]
		} else if diff := cmp.Diff(table, text[found[2]:found[3]]); diff != "" {
			t.Errorf("[%s] in docs/manifest.md (-code +docs):\n%s", section, diff)
		}
	}
	if *update {
		if err := os.WriteFile(docs, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func docTable[T any](fields []field[T], defaults *T) string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		def := f.auto
		if def == "" {
			def = "`" + f.bind("/", defaults).show() + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, def, f.meaning)
	}
	return b.String()
}

// TestDocsExample checks that the manifest that the docs show is one, with the
// files it names, and so is the workflow.
func TestDocsExample(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i, workers := range []string{"", "worker.stock.plugin = 'plugins/a.wasm'\nworker.payments.plugin = 'plugins/b.wasm'\n"} {
		_, rest, ok := strings.Cut(text, "```toml\n")
		example, rest, end := strings.Cut(rest, "```\n")
		if !ok || !end {
			t.Fatalf("docs/manifest.md has only %d examples", i)
		}
		if _, err := parse("docs/manifest.md", []byte(workers+example), setup(t)); err != nil {
			t.Error(err)
		}
		text = rest
	}
}

// TestDefaults checks that a worker that says nothing has the defaults of the
// packages that the settings belong to.
func TestDefaults(t *testing.T) {
	t.Parallel()
	m, err := parse("manifest.toml", []byte("[worker.a]\nplugin = \"plugins/a.wasm\"\n"), setup(t))
	if err != nil {
		t.Fatal(err)
	}
	w := m.Workers[0]
	if w.Limits != runtime.DefaultLimits() || w.Retry != jobhost.DefaultRetry() || w.PoolSize != 4 {
		t.Errorf("got %+v", w)
	}
}

// TestRootManifest checks the manifest that `make run` uses, as far as it goes
// without the plugins, which have to be built first.
func TestRootManifest(t *testing.T) {
	t.Parallel()
	_, err := Load("../../manifest.toml")
	for _, line := range strings.Split(fmt.Sprint(err), "\n") {
		if err != nil && !strings.Contains(line, ".wasm\" does not exist") {
			t.Error(line)
		}
	}
}
