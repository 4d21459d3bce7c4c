package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// runHost runs a host with the no-op guest on a store on disk until the
// benchmark ends.
func runHost(b *testing.B, onEvent func(jobhost.Event), observer sqlitedb.Observer) jobhost.Server {
	b.Helper()
	engine, err := wasm.New(wasm.Config{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return runWorker(b, engine, host.Worker{Name: "noop", Plugin: guests.Noop, PoolSize: 2}, onEvent, observer)
}

// runWorker runs a host with a worker of an engine, which it closes, on a store on disk until the benchmark ends.
func runWorker(b *testing.B, engine runtime.Engine, w host.Worker, onEvent func(jobhost.Event), observer sqlitedb.Observer) jobhost.Server {
	b.Helper()
	store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: b.TempDir(), Observer: observer})
	if err != nil {
		b.Fatal(err)
	}
	w.QueueCapacity, w.Retry = 1<<30, jobhost.DefaultRetry()
	h, err := host.New(host.Config{
		Store: store, Engine: engine, OnEvent: onEvent, Workflows: host.Workflows{MaxOpen: 1 << 20}, Workers: []host.Worker{w},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- h.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
		_ = engine.Close(context.Background())
		_ = store.Close()
	})
	server, err := h.AwaitReady(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return server
}

// BenchmarkJobs measures durable no-op jobs from submit to settled: strict
// durability, a Wasm guest, some producers that wait for the acknowledgement.
func BenchmarkJobs(b *testing.B) {
	for _, producers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			var ended sync.WaitGroup
			h := runHost(b, func(e jobhost.Event) {
				if e.Kind == jobhost.EventEnded {
					ended.Done()
				}
			}, sqlitedb.Observer{})
			var left atomic.Int64
			left.Store(int64(b.N))
			ended.Add(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			var submitting sync.WaitGroup
			for range producers {
				submitting.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := h.Submit(b.Context(), jobhost.Spec{Worker: "noop"}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			submitting.Wait()
			ended.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
