package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

const (
	guestPrefix = "jobhost_guest_"
	// guestHelp is the same for all, since one name has one help text.
	guestHelp = "Kept by workers."
)

// guestCollector exports the metrics of all workers' guests. It also keeps
// their names apart: a name has one kind in the whole exposition, determined by
// the first worker to use it.
type guestCollector struct {
	mu     sync.Mutex // protects the fields below
	guests []*Guest
	names  map[string]guestName // owners of the names in the exposition
}

type guestName struct {
	family string
	kind   hostcall.MetricKind
}

func newGuestCollector() *guestCollector {
	return &guestCollector{names: map[string]guestName{}}
}

func (c *guestCollector) add(g *Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guests = append(c.guests, g)
}

// reserve reports whether a name may be used for a kind, and if so reserves it.
// A histogram x also needs x_bucket, x_sum and x_count.
func (c *guestCollector) reserve(name string, kind hostcall.MetricKind) bool {
	needs := []string{name}
	if kind == hostcall.Histogram {
		needs = append(needs, name+"_bucket", name+"_sum", name+"_count")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := guestName{family: name, kind: kind}
	for _, n := range needs {
		if other, taken := c.names[n]; taken && other != mine {
			return false
		}
	}
	for _, n := range needs {
		c.names[n] = mine
	}
	return true
}

// Describe implements [prometheus.Collector]. It describes nothing, because
// guests create metrics while the host runs.
func (c *guestCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *guestCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	guests := c.guests[:len(c.guests):len(c.guests)]
	c.mu.Unlock()
	for _, g := range guests {
		for _, s := range *g.series.Load() {
			ch <- s.metric()
		}
	}
}
