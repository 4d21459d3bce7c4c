package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Cluster are the metrics of a host that shares its store with others. It is safe for concurrent use.
type Cluster struct {
	takeovers *prometheus.CounterVec
	took      prometheus.Histogram
	fenced    prometheus.Counter
	unknown   *prometheus.CounterVec
	lost      prometheus.Counter
}

// ClusterStatus is what is asked at each scrape.
type ClusterStatus struct {
	Leading  bool
	Epoch    int64
	LeaseAge time.Duration // of the term that this host leads in
	Standbys int           // live hosts that don't lead, as the leader knows them
	Reaches  bool          // this host leads or reaches the one that does
}

var takeoverBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30}

// Cluster adds the metrics of a cluster. It is called once.
func (m *Metrics) Cluster(status func() ClusterStatus) *Cluster {
	c := &Cluster{
		takeovers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_takeovers_total", Help: "Terms that this host has begun, by why there was no leader: first, released, expired or killed.",
		}, []string{"why"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "jobhost_takeover_seconds", Help: "How long it took from when this host found that there was no leader until it answered.", Buckets: takeoverBuckets,
		}),
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "jobhost_fenced_total", Help: "Commits that were refused because another host had taken over.",
		}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_commits_unknown_total", Help: "Commits whose outcome was unknown, since the connection was lost, by what was found: applied or not.",
		}, []string{"found"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "jobhost_acknowledged_lost_total", Help: "Commits that the database had acknowledged and no longer has.",
		}),
	}
	for _, why := range []string{"first", "released", "expired", "killed"} {
		c.takeovers.WithLabelValues(why)
	}
	for _, found := range []string{"applied", "not_applied"} {
		c.unknown.WithLabelValues(found)
	}
	gauge := func(name, help string, value func(ClusterStatus) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(status()) })
	}
	m.registry.MustRegister(c.takeovers, c.took, c.fenced, c.unknown, c.lost,
		gauge("jobhost_leader", "1 when this host leads.", func(s ClusterStatus) float64 { return flag(s.Leading) }),
		gauge("jobhost_leader_reached", "1 when this host leads, or reaches the one that does.", func(s ClusterStatus) float64 { return flag(s.Reaches) }),
		gauge("jobhost_epoch", "Number of the term in which this host leads; 0 = it doesn't.", func(s ClusterStatus) float64 { return float64(s.Epoch) }),
		gauge("jobhost_lease_age_seconds", "How long ago this host renewed its lease; 0 = it doesn't lead.", func(s ClusterStatus) float64 { return s.LeaseAge.Seconds() }),
		gauge("jobhost_standbys", "Hosts that stand by for this one.", func(s ClusterStatus) float64 { return float64(s.Standbys) }),
	)
	return c
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// TookOver counts a term that has begun.
func (c *Cluster) TookOver(why string, took time.Duration) {
	c.takeovers.WithLabelValues(why).Inc()
	c.took.Observe(took.Seconds())
}

// Fenced counts a commit that was refused.
func (c *Cluster) Fenced() { c.fenced.Inc() }

// Resolved counts a commit whose outcome was found out.
func (c *Cluster) Resolved(applied bool) {
	if applied {
		c.unknown.WithLabelValues("applied").Inc()
	} else {
		c.unknown.WithLabelValues("not_applied").Inc()
	}
}

// Lost counts commits that the database no longer has.
func (c *Cluster) Lost(commits int64) { c.lost.Add(float64(commits)) }
