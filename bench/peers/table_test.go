package main

import (
	"strings"
	"testing"
	"time"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	c := &comparison{Date: "2026-01-02", Machine: "a machine", LoadAverages: [2]string{"0.10", "2.00"}, Load: load{Jobs: 10, Producers: 2, Batch: 5, Payload: 64, Rate: 100}}
	for _, done := range []float64{30_000, 10_000, 20_000} {
		c.Results = append(c.Results,
			result{
				System: jobhostName, Single: throughput{Enqueued: done + 1, Done: done, CPU: 25 * time.Millisecond}, Batched: throughput{Done: 2 * done},
				Quiet: latencies{Done50: 400 * time.Microsecond}, Delivery: delivery{Acknowledged: 21},
			},
			result{System: asynqAlwaysName, Single: throughput{Done: done / 10}, Delivery: delivery{Acknowledged: 11, RunTwice: 1}})
	}
	var out strings.Builder
	if err := c.print(&out, []string{jobhostName, asynqAlwaysName}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 20,000 ", "| 40,000 ", "| 10,000–30,000 ", "| 20,000–60,000 ", "0.4 ms", "25 ms",
		"| –", "33 jobs acknowledged, 0 lost, 3 run more than once",
		"10.0 times the jobs of asynq-always one a call, and 20.0 times at the best of each",
		"2026-01-02: a machine. Load average 0.10 before, 2.00 after",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 2}, 2},
		{"even", []float64{4, 1, 2, 9}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := median(tt.values); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
