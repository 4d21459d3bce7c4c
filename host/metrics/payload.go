package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost/state/payload"
)

// payloads counts operations on payload stores.
type payloads struct {
	objects, bytes, errors, removed *prometheus.CounterVec
	contested, away                 *prometheus.GaugeVec
	kept                            prometheus.Gauge
}

func newPayloads() payloads {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return payloads{
		objects: vec("jobhost_payload_objects_total", "Payloads and results that were written to payload stores, read, deleted or listed.", "store", "verb"),
		bytes:   vec("jobhost_payload_bytes_total", "Bytes of payloads and results that were written to payload stores or read, before compression.", "store", "verb"),
		errors:  vec("jobhost_payload_errors_total", "Calls of payload stores that failed, and objects that were found missing or damaged.", "store", "verb"),
		away: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_payload_store_away", Help: "1 while a payload store can't be read (get) or takes nothing (put).",
		}, []string{"store", "verb"}),
		kept: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "jobhost_payload_results_waiting", Help: "Results in memory that wait for a payload store that is away.",
		}),
		removed: vec("jobhost_payload_removed_total", "Objects that were removed from payload stores, with their job (job) or since no job refers to them (orphan).", "reason"),
		contested: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_payload_contested",
			Help: "1 while another living host has the same objects in a payload store, as with a copied folder: none are removed here then.",
		}, []string{"store"}),
	}
}

func (p *payloads) register(r *prometheus.Registry) {
	r.MustRegister(p.objects, p.bytes, p.errors, p.removed, p.contested, p.away, p.kept)
}

// Payload counts an operation on a payload store.
func (m *Metrics) Payload(done payload.Done) {
	store, verb := done.Store, string(done.Verb)
	if done.Err != nil {
		m.payloads.errors.WithLabelValues(store, verb).Inc()
		return
	}
	m.payloads.objects.WithLabelValues(store, verb).Add(float64(done.Objects))
	if done.Bytes > 0 {
		m.payloads.bytes.WithLabelValues(store, verb).Add(float64(done.Bytes))
	}
}

// PayloadsRemoved counts objects removed from payload stores.
func (m *Metrics) PayloadsRemoved(objects int, orphans bool) {
	reason := "job"
	if orphans {
		reason = "orphan"
	}
	m.payloads.removed.WithLabelValues(reason).Add(float64(objects))
}

// PayloadsContested records whether another running host has the same objects.
func (m *Metrics) PayloadsContested(store string, contested bool) {
	m.payloads.contested.WithLabelValues(store).Set(oneIf(contested))
}

// PayloadStoreAway records whether a payload store is unavailable for a verb.
func (m *Metrics) PayloadStoreAway(store string, verb payload.Verb, away bool) {
	m.payloads.away.WithLabelValues(store, string(verb)).Set(oneIf(away))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// SetResultsKept sets how many results are waiting for a payload store.
func (m *Metrics) SetResultsKept(results int) { m.payloads.kept.Set(float64(results)) }
