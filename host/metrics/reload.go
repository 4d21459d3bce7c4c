package metrics

import "github.com/prometheus/client_golang/prometheus"

// ReloadOutcome is what a reload did to a worker: a change, or ReloadFailed.
type ReloadOutcome string

// ReloadFailed says that the new version or the manifest was refused, and the
// old version keeps running.
const ReloadFailed ReloadOutcome = "failed"

func newReloads() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobhost_worker_reloads_total",
		Help: "Reloads, by what they did to a worker: changed, added, removed, unchanged or failed. Without a worker: manifests that were refused.",
	}, []string{"worker", "outcome"})
}

// Reloaded counts what a reload did to a worker of the manifest; empty = the
// manifest as a whole.
func (m *Metrics) Reloaded(worker string, outcome ReloadOutcome) {
	m.reloads.WithLabelValues(worker, string(outcome)).Inc()
}
