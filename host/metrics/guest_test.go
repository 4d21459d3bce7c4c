package metrics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestGuestMetrics(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	g := m.Worker("w").Guest()
	observe := func(kind hostcall.MetricKind, name string, values ...float64) {
		t.Helper()
		id, errno := g.Metric(kind, name)
		if errno != hostcall.OK {
			t.Fatalf("%s: errno %d", name, errno)
		}
		for _, v := range values {
			if errno := g.Observe(id, v); errno != hostcall.OK {
				t.Fatalf("%s %v: errno %d", name, v, errno)
			}
		}
	}
	observe(hostcall.Counter, `requests{code="200"}`, 1, 2)
	observe(hostcall.Counter, `requests{code="500"}`, 0)
	observe(hostcall.Gauge, `temperature`, 5, -3.5)
	observe(hostcall.Histogram, `size_bytes`, 2)
	wantLines(
		t, scrape(t, m),
		`jobhost_guest_requests{code="200",worker="w"} 3`,
		`jobhost_guest_requests{code="500",worker="w"} 0`,
		`jobhost_guest_temperature{worker="w"} -3.5`,
		`jobhost_guest_size_bytes_sum{worker="w"} 2`,
		`jobhost_guest_size_bytes_bucket{worker="w",le="4.096"} 1`,
	)
}

func TestGuestMetricRefusals(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	for _, made := range []struct {
		kind hostcall.MetricKind
		name string
	}{{hostcall.Counter, `requests{code="200"}`}, {hostcall.Histogram, "size"}, {hostcall.Gauge, "load_sum"}} {
		if _, errno := m.Worker("first").Guest().Metric(made.kind, made.name); errno != hostcall.OK {
			t.Fatalf("%s: errno %d", made.name, errno)
		}
	}
	// This waits for its subtests, so that the scrape comes after them.
	t.Run("each", func(t *testing.T) {
		for _, tc := range []struct {
			name   string
			worker string
			kind   hostcall.MetricKind
			metric string
			want   hostcall.Errno
		}{
			{"again", "first", hostcall.Counter, `requests{code="200"}`, hostcall.OK},
			{"same name at another worker", "second", hostcall.Counter, `requests{method="GET"}`, hostcall.OK},
			{"other kind", "first", hostcall.Gauge, `requests{code="200"}`, hostcall.ErrConflict},
			{"other labels", "first", hostcall.Counter, `requests{method="GET"}`, hostcall.ErrConflict},
			{"other kind at another worker", "third", hostcall.Gauge, `requests`, hostcall.ErrConflict},
			{"part of a histogram", "second", hostcall.Gauge, `size_count`, hostcall.ErrConflict},
			{"histogram whose part is taken", "second", hostcall.Histogram, `load`, hostcall.ErrConflict},
			{"unknown kind", "first", 4, `x`, hostcall.ErrInvalid},
			{"kind zero", "first", 0, `x`, hostcall.ErrInvalid},
			{"no name", "first", hostcall.Counter, ``, hostcall.ErrInvalid},
			{"the host's label", "first", hostcall.Counter, `x{worker="other"}`, hostcall.ErrInvalid},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				if _, errno := m.Worker(tc.worker).Guest().Metric(tc.kind, tc.metric); errno != tc.want {
					t.Errorf("errno %d, want %d", errno, tc.want)
				}
			})
		}
	})
	scrape(t, m) // the exposition is still sound
}

func TestGuestObserveRefusals(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	g := m.Worker("w").Guest()
	counter, _ := g.Metric(hostcall.Counter, "c")
	gauge, _ := g.Metric(hostcall.Gauge, "g")
	for _, tc := range []struct {
		name string
		id   int32
		v    float64
		want hostcall.Errno
	}{
		{"id below", -1, 0, hostcall.ErrNotFound},
		{"id above", gauge + 1, 0, hostcall.ErrNotFound},
		{"largest id", math.MaxInt32, 0, hostcall.ErrNotFound},
		{"counter goes down", counter, -1, hostcall.ErrInvalid},
		{"not a number", gauge, math.NaN(), hostcall.ErrInvalid},
		{"infinite", gauge, math.Inf(1), hostcall.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if errno := g.Observe(tc.id, tc.v); errno != tc.want {
				t.Errorf("errno %d, want %d", errno, tc.want)
			}
		})
	}
}

func TestGuestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	g := m.Worker("w").Guest()
	made := 0
	for name := range metrics.MaxGuestMetrics + 5 {
		for set := range metrics.MaxGuestSets + 5 {
			_, errno := g.Metric(hostcall.Counter, fmt.Sprintf(`m%d{set="%d"}`, name, set))
			over := name >= metrics.MaxGuestMetrics || set >= metrics.MaxGuestSets
			if want := map[bool]hostcall.Errno{true: hostcall.ErrLimit, false: hostcall.OK}[over]; errno != want {
				t.Fatalf("metric %d set %d: errno %d, want %d", name, set, errno, want)
			}
			if !over {
				made++
			}
		}
	}
	text := scrape(t, m)
	if n := strings.Count(text, "\njobhost_guest_"); n != made {
		t.Errorf("%d series, want %d", n, made)
	}
	refused := 16*5 + 5*105
	wantLines(t, text, fmt.Sprintf(`jobhost_limit_hits_total{limit="guest_metrics"} %d`, refused))
}
