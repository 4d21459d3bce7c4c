package metrics

import "github.com/prometheus/client_golang/prometheus"

// Limit is a limit of the host that can be hit.
type Limit int

// The limits, with their labels.
const (
	LimitQueue        Limit = iota // queue: a submit found its worker's queue full
	LimitPayload                   // payload: a payload was too large
	LimitBody                      // body: a request was too large
	LimitBatch                     // batch: a batch held too many jobs
	LimitOutput                    // output: a result was too large
	LimitLog                       // log: lines of a log were dropped
	LimitMemory                    // memory: a guest asked for more than it is allowed
	LimitFuel                      // fuel: an attempt used up its fuel
	LimitStack                     // call_depth: a guest's calls were nested too deeply
	LimitTime                      // time: an attempt was stopped at its deadline
	LimitReader                    // reader: a reader of events was too slow and was closed
	LimitConnections               // connections: the API had too many
	LimitGuestMetrics              // guest_metrics: a guest had too many metrics or label sets
	LimitKVQuota                   // kv_quota: the keys and values of a worker would have exceeded its quota
	LimitEffects                   // effects: an attempt changed too much
	LimitChildren                  // child_jobs: a job had too many children, or belonged to too deep a generation
	LimitDisk                      // disk: a submit found the disk nearly full
	LimitJournal                   // journal: a running attempt could not be recorded
	limitCount
)

var limitLabels = [limitCount]string{
	"queue", "payload", "body", "batch", "output", "log", "memory", "fuel", "call_depth", "time", "reader", "connections", "guest_metrics",
	"kv_quota", "effects", "child_jobs", "disk", "journal",
}

// String returns the label.
func (l Limit) String() string {
	if l < 0 || l >= limitCount {
		return "unknown"
	}
	return limitLabels[l]
}

// newLimits creates all counters, so that they exist before they count.
func (m *Metrics) newLimits() prometheus.Collector {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobhost_limit_hits_total",
		Help: "How often a limit was hit.",
	}, []string{"limit"})
	for i, label := range limitLabels {
		m.limits[i] = vec.WithLabelValues(label)
	}
	return vec
}

// LimitHit counts a limit that was hit.
func (m *Metrics) LimitHit(l Limit) { m.limits[l].Inc() }
