// Package metrics counts what a host does, for Prometheus.
//
// Frequent events are counted as they happen, on counters that were looked up
// beforehand: see [Worker]. Numbers that exist anyway (queues, pools) are read
// at each scrape: see [Source]. Labels have few values: workers of the
// manifest, states, priorities, and fixed lists; never the id of a job. What
// guests count is bounded by [Guest].
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jobhost/jobhost/internal/version"
)

// Metrics are the metrics of one host, in their own registry. It is safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	source   *sourceCollector
	guests   *guestCollector

	jobs      *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	wait      *prometheus.HistogramVec
	replaced  *prometheus.CounterVec
	reset     *prometheus.HistogramVec
	fuel      *prometheus.CounterVec
	reloads   *prometheus.CounterVec
	fires     *prometheus.CounterVec
	lateness  *prometheus.HistogramVec
	removed   *prometheus.CounterVec
	limits    [limitCount]prometheus.Counter
	http      *httpMetrics
	payloads  payloads
	states    *stateMetrics
	fibers    *fiberMetrics
	workflows *Workflows
	processes *Processes
	crashes   *crashMetrics

	commit  prometheus.Histogram
	batch   prometheus.Histogram
	relaxed prometheus.Gauge
	free    prometheus.Gauge

	mu      sync.Mutex // protects workers
	workers map[string]*Worker
}

// Bounds of the buckets, in seconds and operations.
var (
	runBuckets    = []float64{50e-6, 200e-6, .001, .005, .025, .1, .5, 2.5, 10, 60, 300, 1800}
	waitBuckets   = []float64{.001, .005, .025, .1, .5, 2.5, 10, 60, 300, 1800, 7200, 86400}
	resetBuckets  = []float64{1e-6, 2e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, .001, .005, .025}
	commitBuckets = []float64{100e-6, 250e-6, 500e-6, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}
	batchBuckets  = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}
)

// New returns the metrics of a host, all at zero.
func New() *Metrics {
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		source:    newSourceCollector(),
		guests:    newGuestCollector(),
		workers:   map[string]*Worker{},
		payloads:  newPayloads(),
		states:    newStateMetrics(),
		fibers:    newFiberMetrics(),
		workflows: newWorkflows(),
		processes: newProcesses(),
		crashes:   newCrashMetrics(),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_jobs_total",
			Help: "Attempts that ended, by what became of their task: succeeded, retrying, dead, cancelled, snoozed or returned.",
		}, []string{"worker", "outcome"}),
		duration: histogramVec("jobhost_job_duration_seconds", "How long attempts ran.", runBuckets),
		wait:     histogramVec("jobhost_job_wait_seconds", "How long tasks were ready before an attempt began.", waitBuckets),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_sandbox_replaced_total",
			Help: "Sandboxes that were thrown away, by the reason.",
		}, []string{"worker", "reason"}),
		reset: histogramVec("jobhost_sandbox_reset_seconds", "How long it took to put a sandbox back to its beginning.", resetBuckets),
		fuel: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_fuel_total",
			Help: "Work that guests have done, about one unit for each pass of a loop and each call.",
		}, []string{"worker"}),
		reloads:  newReloads(),
		fires:    newFires(),
		lateness: newLateness(),
		http:     newHTTPMetrics(),
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_tasks_removed_total",
			Help: "Tasks that were removed from the store, because their time was over (expired) or for newer dead ones (evicted).",
		}, []string{"reason"}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "jobhost_store_commit_seconds", Help: "How long commits of the store took, the sync included.", Buckets: commitBuckets,
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "jobhost_store_batch_size", Help: "Operations per commit of the store.", Buckets: batchBuckets,
		}),
		relaxed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "jobhost_durability_relaxed", Help: "1 when the store acknowledges before it syncs, so that a power loss can lose jobs.",
		}),
		free: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "jobhost_disk_free_bytes", Help: "Free space on the disk of the store; below host.min_free new jobs are refused.",
		}),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.source, m.guests, m.jobs, m.duration, m.wait, m.replaced, m.reloads, m.removed, m.fires, m.lateness, m.reset, m.fuel, m.commit, m.batch, m.relaxed, m.free,
		m.newLimits(), buildInfo(version.Get()),
	)
	m.registry.MustRegister(m.http.collectors()...)
	m.payloads.register(m.registry)
	m.states.register(m.registry)
	m.fibers.register(m.registry)
	m.workflows.register(m.registry)
	m.registry.MustRegister(m.processes.running, m.processes.ends, m.crashes.host, m.crashes.strikes)
	return m
}

func histogramVec(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"worker"})
}

func buildInfo(v version.Info) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "jobhost_build_info",
		Help:        "1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": v.Version, "revision": v.Revision, "goversion": v.Go},
	})
	g.Set(1)
	return g
}

// SetSource sets the source of queue and pool numbers, read at each scrape,
// replacing an earlier one.
func (m *Metrics) SetSource(s Source) { m.source.set(s) }

// StoreCommit counts a commit with that many operations.
func (m *Metrics) StoreCommit(operations int, took time.Duration) {
	m.commit.Observe(took.Seconds())
	m.batch.Observe(float64(operations))
}

// Removed counts tasks that were removed from the store for a reason.
func (m *Metrics) Removed(reason string, tasks int) {
	m.removed.WithLabelValues(reason).Add(float64(tasks))
}

// SetFreeSpace sets the number of free bytes on the store's disk.
func (m *Metrics) SetFreeSpace(bytes int64) { m.free.Set(float64(bytes)) }

// SetRelaxed sets whether the store acknowledges before it syncs.
func (m *Metrics) SetRelaxed(relaxed bool) {
	if relaxed {
		m.relaxed.Set(1)
	} else {
		m.relaxed.Set(0)
	}
}

// Limits of scraping: each scrape reads all queues, so only a few at a time.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler serves the metrics in the Prometheus text format. Beyond a few
// concurrent scrapes it answers 503.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
}

// Gatherer returns the metrics for programs that embed a host.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }
