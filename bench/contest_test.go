package bench

import (
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// contest alternates between variants, and reports how many requests per second each
// does, also relative to the first one, and what each request costs this process:
// the medians of all rounds.
func contest(b *testing.B, names []string, turns ...func(stop *atomic.Bool) int) {
	b.Helper()
	rates := make([][]float64, len(turns))
	parts := make([][]float64, len(turns))
	costs := make([][]float64, len(turns))
	heap := make([]byte, 64<<20) // as in a host: otherwise the collector would do hardly anything else
	defer runtime.KeepAlive(&heap)
	one := func(i int) float64 {
		var stop atomic.Bool
		timer := time.AfterFunc(turn, func() { stop.Store(true) })
		defer timer.Stop()
		began, spent := time.Now(), spent(b)
		n := float64(turns[i](&stop))
		costs[i] = append(costs[i], float64(spent().Nanoseconds())/1e3/n)
		return n / time.Since(began).Seconds()
	}
	for i := range turns {
		one(i) // connections, and code that was never run before
	}
	round := 0
	for b.Loop() {
		now := make([]float64, len(turns))
		for k := range turns {
			i := (k + round) % len(turns) // so that none always follows the same one
			now[i] = one(i)
			rates[i] = append(rates[i], now[i])
		}
		for i := range turns {
			parts[i] = append(parts[i], now[i]/now[0])
		}
		round++
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range names {
		b.ReportMetric(median(rates[i]), name+"/s")
		b.ReportMetric(median(costs[i]), name+"_cpu-µs")
		if i > 0 {
			b.ReportMetric(100*median(parts[i]), name+"_%")
		}
	}
}

// spent returns a function that says how much processor time has been used since.
func spent(b *testing.B) func() time.Duration {
	now := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := now()
	return func() time.Duration { return now() - before }
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
