package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// queues is a source with fixed numbers.
type queues []metrics.WorkerStats

func (q queues) QueueStats() []metrics.WorkerStats { return q }

// scrape returns the exposition.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func TestJobDone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		kind  jobhost.OutcomeKind
		state jobhost.State
		want  string
	}{
		{"succeeded", jobhost.OutcomeSucceeded, jobhost.Succeeded, "succeeded"},
		{"failed, to be tried again", jobhost.OutcomeFailed, jobhost.Retrying, "retrying"},
		{"failed for good", jobhost.OutcomeFailed, jobhost.Dead, "dead"},
		{"snoozed", jobhost.OutcomeSnoozed, jobhost.Scheduled, "snoozed"},
		{"cancelled", jobhost.OutcomeCancelled, jobhost.Cancelled, "cancelled"},
		{"returned", jobhost.OutcomeReturned, jobhost.Ready, "returned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New()
			m.Worker("w").JobDone(tc.kind, tc.state, 2*time.Second, 20*time.Millisecond)
			wantLines(
				t, scrape(t, m),
				`jobhost_jobs_total{outcome="`+tc.want+`",worker="w"} 1`,
				`jobhost_job_wait_seconds_sum{worker="w"} 2`,
				`jobhost_job_duration_seconds_bucket{worker="w",le="0.005"} 0`,
				`jobhost_job_duration_seconds_bucket{worker="w",le="0.025"} 1`,
			)
		})
	}
}

func TestSourceIsReadAtScrape(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	if text := scrape(t, m); strings.Contains(text, "jobhost_queue_tasks") {
		t.Error("there are queues without a source")
	}
	var tasks metrics.StateLevels
	tasks[jobhost.Ready][jobhost.Low.Level()] = 7
	m.SetSource(queues{{Worker: "w", Tasks: tasks, Oldest: 90 * time.Second, Slots: 4, Busy: 3, Dead: 2}})
	text := scrape(t, m)
	wantLines(
		t, text,
		`jobhost_queue_tasks{priority="3",state="ready",worker="w"} 7`,
		`jobhost_queue_tasks{priority="2",state="ready",worker="w"} 0`,
		`jobhost_queue_oldest_seconds{worker="w"} 90`,
		`jobhost_pool_slots{state="busy",worker="w"} 3`,
		`jobhost_pool_slots{state="idle",worker="w"} 1`,
		`jobhost_dead_tasks{worker="w"} 2`,
	)
	if strings.Contains(text, `state="succeeded"`) {
		t.Error("ended tasks are in the queue")
	}
}

func TestStoreLimitsAndBuild(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.StoreCommit(300, 3*time.Millisecond)
	m.SetRelaxed(true)
	m.LimitHit(metrics.LimitQueue)
	w := m.Worker("w")
	w.Ran(&runtime.Result{Replace: runtime.ReplacedTrap, MemoryRefused: true, Outcome: jobhost.Outcome{Fuel: 7}})
	w.Ran(&runtime.Result{Reset: 3 * time.Microsecond, Outcome: jobhost.Outcome{Fuel: 5}})
	text := scrape(t, m)
	wantLines(
		t, text,
		`jobhost_store_batch_size_bucket{le="256"} 0`,
		`jobhost_store_batch_size_bucket{le="512"} 1`,
		`jobhost_store_commit_seconds_count 1`,
		`jobhost_durability_relaxed 1`,
		`jobhost_limit_hits_total{limit="queue"} 1`,
		`jobhost_limit_hits_total{limit="guest_metrics"} 0`,
		`jobhost_sandbox_replaced_total{reason="trap",worker="w"} 1`,
		`jobhost_sandbox_replaced_total{reason="grown",worker="w"} 0`,
		`jobhost_sandbox_reset_seconds_bucket{worker="w",le="2e-06"} 0`,
		`jobhost_sandbox_reset_seconds_bucket{worker="w",le="5e-06"} 1`,
		`jobhost_fuel_total{worker="w"} 12`,
		`jobhost_limit_hits_total{limit="memory"} 1`,
	)
	if !strings.Contains(text, `jobhost_build_info{goversion="go`) {
		t.Error("no build info")
	}
	m.SetRelaxed(false)
	wantLines(t, scrape(t, m), `jobhost_durability_relaxed 0`)
}

func TestLimitsHaveLabels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for l := metrics.Limit(0); l.String() != "unknown"; l++ {
		if l.String() == "" || seen[l.String()] {
			t.Errorf("limit %d is called %q", int(l), l)
		}
		seen[l.String()] = true
	}
	if !seen[metrics.LimitGuestMetrics.String()] {
		t.Error("the last limit has no label")
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Worker("w").JobDone(jobhost.OutcomeSucceeded, jobhost.Succeeded, 0, 0)
	m.SetSource(queues{{Worker: "w"}})
	if _, errno := m.Worker("w").Guest().Metric(hostcall.Gauge, "temperature"); errno != hostcall.OK {
		t.Fatal(errno)
	}
	problems, err := testutil.GatherAndLint(m.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
