package pgstate_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state"
)

// counting is a feed that only counts.
type counting struct{ n atomic.Int64 }

func (f *counting) Put(states ...state.State) { f.n.Add(int64(len(states))) }
func (f *counting) End(error)                 {}

func follow(t testing.TB, s state.Store, job state.Job, tasks int, feed state.Feed) state.Source {
	t.Helper()
	src, err := s.Open(t.Context(), job, tasks, feed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() }) // which never fails
	return src
}

// BenchmarkSet makes states durable in as many goroutines as the name says: each those of a job of its own, or all of
// one job, or each time of a new job. The server syncs, and the CPU of both sides counts.
func BenchmarkSet(b *testing.B) {
	server := postgres.Start(b, "fsync=on", "synchronous_commit=on")
	for _, kind := range []string{"own job", "one job", "new jobs"} {
		for _, writers := range []int{1, 256} {
			b.Run(fmt.Sprintf("%s/writers=%d", kind, writers), func(b *testing.B) { set(b, server, kind, writers) })
		}
	}
}

func set(b *testing.B, server *postgres.Server, kind string, writers int) {
	s := open(b, server.URL(), server.Schema(b))
	sources := make([]state.Source, writers)
	for i := range sources {
		if sources[i] = sources[0]; kind != "one job" || i == 0 {
			sources[i] = follow(b, s, state.Job{ID: fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", i)}, 2048, &counting{})
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	own, theirs := cputime.Used(), server.CPU(b)
	var next atomic.Int64
	var group sync.WaitGroup
	for i, src := range sources {
		group.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if kind == "new jobs" {
					src = follow(b, s, state.Job{ID: fmt.Sprintf("0190a3c4-7b1e-7000-8000-1%011d", n)}, 2048, &counting{})
				}
				st := state.State{TaskID: i, Tag: "ingest", Status: int32(n), Message: "so many files are done", SchemaVersion: 1}
				if _, err := src.Set(b.Context(), st); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sets/s")
	b.ReportMetric(float64((cputime.Used()-own).Microseconds())/float64(b.N), "own-cpu-µs/set")
	b.ReportMetric(float64((server.CPU(b)-theirs).Microseconds())/float64(b.N), "server-cpu-µs/set")
}
