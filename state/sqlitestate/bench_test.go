package sqlitestate_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// nobody is a feed that only counts.
type nobody struct{ n atomic.Int64 }

func (f *nobody) Put(states ...state.State) { f.n.Add(int64(len(states))) }
func (f *nobody) End(error)                 {}

// BenchmarkSet makes states durable in as many goroutines as the name says: each
// the states of a job of its own, or all of one job, or each time of a new job.
func BenchmarkSet(b *testing.B) {
	for _, writers := range []int{1, 16, 256, 2048} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			set(b, sqlitestate.Options{Dir: b.TempDir()}, writers, ownJob)
		})
	}
	b.Run("one job/writers=256", func(b *testing.B) {
		set(b, sqlitestate.Options{Dir: b.TempDir()}, 256, oneJob)
	})
	b.Run("new jobs/writers=256", func(b *testing.B) {
		set(b, sqlitestate.Options{Dir: b.TempDir()}, 256, newJobs)
	})
	b.Run("relaxed/writers=256", func(b *testing.B) {
		set(b, sqlitestate.Options{Dir: b.TempDir(), Relaxed: true}, 256, ownJob)
	})
	b.Run("memory/writers=256", func(b *testing.B) {
		set(b, sqlitestate.Options{}, 256, ownJob)
	})
}

const (
	ownJob = iota
	oneJob
	newJobs
)

func set(b *testing.B, opts sqlitestate.Options, writers, kind int) {
	var commits, ops atomic.Int64
	opts.Observer.Commit = func(n int, _ time.Duration) { commits.Add(1); ops.Add(int64(n)) }
	store := open(b, opts)
	sources := make([]state.Source, writers)
	for i := range sources {
		if kind == oneJob && i > 0 {
			sources[i] = sources[0] // as one board for all does
			continue
		}
		sources[i] = follow(b, store, state.Job{ID: fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", i)}, 2048, &nobody{})
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cputime.Used()
	var next atomic.Int64
	var wg sync.WaitGroup
	for i, source := range sources {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				src := source
				if kind == newJobs {
					var err error
					if src, err = store.Open(b.Context(), state.Job{ID: fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", n)}, 1, &nobody{}); err != nil {
						b.Error(err)
						return
					}
				}
				st := state.State{TaskID: i, Tag: "ingest", Status: int32(n), Message: "so many files are done", SchemaVersion: 1}
				if _, err := src.Set(b.Context(), st); err != nil {
					b.Error(err)
					return
				}
				if kind == newJobs {
					_ = src.Close()
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sets/s")
	b.ReportMetric(float64((cputime.Used()-cpu).Nanoseconds())/1e3/float64(b.N), "cpu-µs/set")
	b.ReportMetric(float64(ops.Load())/float64(max(commits.Load(), 1)), "ops/commit")
}

// BenchmarkOpen opens a job with 10,000 states.
func BenchmarkOpen(b *testing.B) {
	store := open(b, sqlitestate.Options{Dir: b.TempDir(), Relaxed: true})
	fill(b, store, state.Job{ID: "big"}, 10_000)
	b.Run("feed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			feed := &nobody{}
			src, err := store.Open(b.Context(), state.Job{ID: "big"}, 0, feed)
			if err != nil || feed.n.Load() != 10_000 {
				b.Fatal(feed.n.Load(), err)
			}
			_ = src.Close()
		}
	})
	b.Run("board", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			board, err := state.NewBoard(b.Context(), store, state.Job{ID: "big"}, 0, state.Observer{})
			if err != nil {
				b.Fatal(err)
			}
			_ = board.Close()
		}
	})
}

// BenchmarkDelete deletes a job with 100,000 states.
func BenchmarkDelete(b *testing.B) {
	store := open(b, sqlitestate.Options{Dir: b.TempDir(), Relaxed: true})
	for b.Loop() {
		b.StopTimer()
		fill(b, store, state.Job{ID: "big"}, 100_000)
		b.StartTimer()
		if err := store.Delete(b.Context(), state.Job{ID: "big"}); err != nil {
			b.Fatal(err)
		}
	}
}

// fill gives a job so many states.
func fill(tb testing.TB, store *sqlitestate.Store, job state.Job, n int) {
	tb.Helper()
	src := follow(tb, store, job, n/4, &nobody{})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 256 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				st := state.State{TaskID: i / 4, Tag: fmt.Sprint("tag", i%4), Status: 1, Message: "so many files are done", SchemaVersion: 1}
				if _, err := src.Set(context.Background(), st); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func follow(tb testing.TB, store state.Store, job state.Job, tasks int, feed state.Feed) state.Source {
	tb.Helper()
	src, err := store.Open(tb.Context(), job, tasks, feed)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = src.Close() })
	return src
}

func open(tb testing.TB, opts sqlitestate.Options) *sqlitestate.Store {
	tb.Helper()
	store, err := sqlitestate.Open(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}
