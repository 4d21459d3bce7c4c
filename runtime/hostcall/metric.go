package hostcall

import "math"

// Metric returns the id of a guest metric, for use with Observe. The name is
// parsed by [ParseMetric] behind [Services], where the number of metrics is
// limited too. Errors: [ErrDenied] without Services, [ErrInvalid] for an
// unknown kind or a bad name, [ErrLimit] when there are too many metrics.
func (a *Attempt) Metric(kind MetricKind, name string) (int32, Errno) {
	switch {
	case a.Services == nil:
		return 0, ErrDenied
	case kind < Counter || kind > Histogram, len(name) > MaxMetricBytes:
		return 0, ErrInvalid
	}
	return a.Services.Metric(a, kind, name)
}

// Observe adds value to a counter, sets a gauge to it, or counts it in a
// histogram. A value that is not a finite number is [ErrInvalid].
func (a *Attempt) Observe(id int32, value float64) Errno {
	switch {
	case a.Services == nil:
		return ErrDenied
	case math.IsNaN(value) || math.IsInf(value, 0):
		return ErrInvalid
	}
	return a.Services.Observe(a, id, value)
}
