package metrics

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Limits for the guests of one worker.
const (
	MaxGuestMetrics = 16  // names
	MaxGuestSets    = 100 // sets of labels per name
)

// guestBuckets are the buckets of all guest histograms, since a guest can't
// choose them: the values may be seconds, bytes or anything else.
var guestBuckets = prometheus.ExponentialBuckets(0.001, 4, 16) // 0.001 to about a million

// Guest keeps the metrics made by the guests of one worker: counters, gauges
// and histograms called jobhost_guest_<name> with the label worker and the
// guest's own. It is safe for concurrent use.
type Guest struct {
	worker   string
	names    *guestCollector
	overruns prometheus.Counter

	// series by id, copied on growth so that Observe takes no lock.
	series atomic.Pointer[[]guestSeries]

	mu       sync.Mutex             // protects the fields below and writing series
	ids      map[string]int32       // of series, by the name's canonical text
	families map[string]guestFamily // by name
}

// guestSeries is one series; the field of its kind is set.
type guestSeries struct {
	counter   prometheus.Counter
	gauge     prometheus.Gauge
	histogram prometheus.Histogram
}

// guestFamily is what all series with one name have in common.
type guestFamily struct {
	kind   hostcall.MetricKind
	labels []string // sorted
	sets   int
}

func newGuest(worker string, names *guestCollector, overruns prometheus.Counter) *Guest {
	g := &Guest{
		worker: worker, names: names, overruns: overruns,
		ids: map[string]int32{}, families: map[string]guestFamily{},
	}
	g.series.Store(&[]guestSeries{})
	names.add(g)
	return g
}

// Metric returns the id of a metric, for Observe, and creates it if necessary.
// The same name and labels always give the same id. Errors:
// [hostcall.ErrInvalid] for an unknown kind or a bad name (see
// [hostcall.ParseMetric]), [hostcall.ErrConflict] if the name is in use for
// another kind, here or by another worker, or with other labels,
// [hostcall.ErrLimit] if there are too many.
func (g *Guest) Metric(kind hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	parsed, err := hostcall.ParseMetric(name)
	if err != nil || kind < hostcall.Counter || kind > hostcall.Histogram {
		return 0, hostcall.ErrInvalid
	}
	labels := make([]string, len(parsed.Labels))
	for i, l := range parsed.Labels {
		labels[i] = l.Name
	}
	key := parsed.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	family, known := g.families[parsed.Name]
	if known && (family.kind != kind || !slices.Equal(family.labels, labels)) {
		return 0, hostcall.ErrConflict
	}
	if id, ok := g.ids[key]; ok {
		return id, hostcall.OK
	}
	if family.sets == MaxGuestSets || !known && len(g.families) == MaxGuestMetrics {
		g.overruns.Inc()
		return 0, hostcall.ErrLimit
	}
	if !known && !g.names.reserve(parsed.Name, kind) {
		return 0, hostcall.ErrConflict
	}
	g.families[parsed.Name] = guestFamily{kind: kind, labels: labels, sets: family.sets + 1}
	return g.addLocked(key, kind, parsed), hostcall.OK
}

// addLocked creates a series and gives it the next id.
func (g *Guest) addLocked(key string, kind hostcall.MetricKind, name hostcall.MetricName) int32 {
	labels := prometheus.Labels{"worker": g.worker}
	for _, l := range name.Labels {
		labels[l.Name] = l.Value
	}
	opts := prometheus.Opts{Name: guestPrefix + name.Name, Help: guestHelp, ConstLabels: labels}
	var s guestSeries
	switch kind {
	case hostcall.Counter:
		s.counter = prometheus.NewCounter(prometheus.CounterOpts(opts))
	case hostcall.Gauge:
		s.gauge = prometheus.NewGauge(prometheus.GaugeOpts(opts))
	default:
		s.histogram = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: opts.Name, Help: opts.Help, ConstLabels: labels, Buckets: guestBuckets,
		})
	}
	old := *g.series.Load()
	// Readers of old don't look beyond its end, so its array may be shared.
	grown := append(old, s) //nolint:gocritic // appendAssign: old stays as it is for those who have it
	g.series.Store(&grown)
	id := int32(len(old))
	g.ids[key] = id
	return id
}

// Observe adds to a counter, sets a gauge or counts in a histogram. Errors:
// [hostcall.ErrNotFound] for an id that Metric did not return,
// [hostcall.ErrInvalid] for a value that is not finite, or negative for a
// counter.
func (g *Guest) Observe(id int32, v float64) hostcall.Errno {
	series := *g.series.Load()
	if id < 0 || int(id) >= len(series) {
		return hostcall.ErrNotFound
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return hostcall.ErrInvalid
	}
	switch s := series[id]; {
	case s.counter != nil:
		if v < 0 {
			return hostcall.ErrInvalid
		}
		s.counter.Add(v)
	case s.gauge != nil:
		s.gauge.Set(v)
	default:
		s.histogram.Observe(v)
	}
	return hostcall.OK
}

func (s guestSeries) metric() prometheus.Metric {
	switch {
	case s.counter != nil:
		return s.counter
	case s.gauge != nil:
		return s.gauge
	}
	return s.histogram
}
