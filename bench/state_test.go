package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// openStates opens a store in a folder, strict, or in memory, and the board of a job.
func openStates(b *testing.B, dir string, tasks int) *state.Board {
	b.Helper()
	store, err := sqlitestate.Open(sqlitestate.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	board, err := state.NewBoard(b.Context(), store, state.Job{ID: "bench"}, tasks, state.Observer{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = board.Close() })
	return board
}

func manager(b *testing.B, board *state.Board, task int) *state.Manager {
	b.Helper()
	m, err := state.NewManager(board, task)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkStateWrites makes states durable with that many concurrent managers.
func BenchmarkStateWrites(b *testing.B) {
	for _, writers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			board := openStates(b, b.TempDir(), writers)
			cpu := spent(b)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for task := range writers {
				m := manager(b, board, task)
				all.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						s := state.State{TaskID: task, Tag: "ingest", Status: int32(n), Message: "so many rows", Payload: json.RawMessage(`{"rows":5000}`)}
						if err := m.SetState(b.Context(), s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			b.ReportMetric(float64(cpu().Nanoseconds())/1e3/float64(b.N), "cpu-µs/write")
		})
	}
}

// setMany sets the states of tasks under tags, all durable when it returns.
func setMany(b *testing.B, board *state.Board, tasks, tags int) {
	b.Helper()
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < tasks*tags; i += 64 {
				s := state.State{TaskID: i % tasks, Tag: "tag-" + strconv.Itoa(i/tasks), Status: 2, Message: "so many rows"}
				if _, err := board.Set(b.Context(), s); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkStateReplay subscribes to a job of 10,000 states, and reads all of them.
func BenchmarkStateReplay(b *testing.B) {
	board := openStates(b, b.TempDir(), 1000)
	setMany(b, board, 1000, 10)
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		sub, err := board.Subscribe(ctx, state.Query{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for e := range sub.Events() {
			if e.Sentinel {
				break
			}
			n++
		}
		cancel()
		if n != 10_000 {
			b.Fatalf("%d states were delivered", n)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms")
}

// BenchmarkStateGet asks for the lowest state of a tag that 1,000 tasks report
// under, while they go on to report.
func BenchmarkStateGet(b *testing.B) {
	board := openStates(b, b.TempDir(), 1000)
	setMany(b, board, 1000, 1)
	m := manager(b, board, state.Monitor)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.GetState(b.Context(), state.WithTag("tag-0")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStateDelivery watches a job with 100 subscriptions while its states change
// 1,000 times per second, for five seconds, and reports how long it takes from the call
// that sets a state to each of its watchers: with the commit that makes it durable, and
// without, in memory.
func BenchmarkStateDelivery(b *testing.B) {
	b.Run("disk", func(b *testing.B) { deliver(b, b.TempDir) })
	b.Run("memory", func(b *testing.B) { deliver(b, func() string { return "" }) })
}

func deliver(b *testing.B, dir func() string) {
	const watchers, rate, changes = 100, 1000, 5000
	for b.Loop() {
		board := openStates(b, dir(), 100)
		began := make([]time.Time, changes+1) // by the status
		took := make([][]time.Duration, watchers)
		var all sync.WaitGroup
		for i := range watchers {
			sub, err := board.Subscribe(b.Context(), state.Query{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			all.Go(func() {
				defer sub.Close()
				for e := range sub.Events() {
					if e.Sentinel {
						continue
					}
					took[i] = append(took[i], time.Since(began[e.State.Status]))
					if len(took[i]) == changes {
						return
					}
				}
				b.Errorf("watcher %d received %d changes: %v", i, len(took[i]), sub.Err())
			})
		}
		tick := time.NewTicker(time.Second / rate)
		for n := 1; n <= changes; n++ {
			<-tick.C
			began[n] = time.Now()
			all.Go(func() {
				if _, err := board.Set(b.Context(), state.State{TaskID: n % 100, Tag: "tag-" + strconv.Itoa(n/100%10), Status: int32(n)}); err != nil {
					b.Error(err)
				}
			})
		}
		tick.Stop()
		all.Wait()
		one := slices.Concat(took...)
		slices.Sort(one)
		b.ReportMetric(float64(one[len(one)/2].Nanoseconds())/1e6, "p50-ms")
		b.ReportMetric(float64(one[len(one)*99/100].Nanoseconds())/1e6, "p99-ms")
		b.ReportMetric(float64(one[len(one)-1].Nanoseconds())/1e6, "max-ms")
	}
	b.ReportMetric(0, "ns/op")
}
