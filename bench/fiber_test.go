package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// fiberHost runs a host in memory with one worker, "fiber".
func fiberHost(b *testing.B, plugin []byte, fibers int) jobhost.Server {
	b.Helper()
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		b.Fatal(err)
	}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		b.Fatal(err)
	}
	h, err := host.New(host.Config{
		Store: store, Engine: engine, ShutdownTimeout: time.Minute, Fibers: host.Fibers{Max: fibers},
		Workers: []host.Worker{{
			Name: "fiber", Plugin: plugin, PoolSize: 1, QueueCapacity: 10, Limits: runtime.DefaultLimits(), Retry: jobhost.DefaultRetry(),
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, engine.Close(context.Background()), store.Close()); err != nil {
			b.Error(err)
		}
	})
	server, err := h.AwaitReady(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return server
}

// BenchmarkFiberRoundTrip measures from the send of a message to its answer at a
// subscriber: host, sandbox, hub.
func BenchmarkFiberRoundTrip(b *testing.B) {
	h := fiberHost(b, guests.Fiber, 1)
	if _, err := h.StartFiber(b.Context(), jobhost.FiberSpec{ID: "echo", Worker: "fiber", Init: []byte("ready")}); err != nil {
		b.Fatal(err)
	}
	next, stop := iter.Pull2(h.WatchFiber(b.Context(), jobhost.FiberQuery{ID: "echo", Replay: true}))
	defer stop()
	if _, err, _ := next(); err != nil {
		b.Fatal(err)
	}
	message := make([]byte, 64)
	took := make([]time.Duration, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		if err := h.SendFiber(b.Context(), "echo", message, false); err != nil {
			b.Fatal(err)
		}
		if o, err, _ := next(); err != nil || len(o.Data) != len(message) {
			b.Fatal(o, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
}

// BenchmarkIdleFibers measures the memory of fibers that wait for input. RSS counts
// the pages of a plugin's image once for each fiber that has read them, although
// all share them; PSS counts each page of memory once. FIBERS is the number of
// fibers, default 10,000.
func BenchmarkIdleFibers(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("FIBERS"))
	if err != nil {
		n = 10_000
	}
	for _, guest := range []struct{ name, path string }{{"Go guest", "../plugins/examples/chat-room/chat-room.wasm"}, {"C guest", ""}} {
		b.Run(guest.name, func(b *testing.B) {
			plugin := guests.Fiber
			if guest.path != "" {
				var err error
				if plugin, err = os.ReadFile(guest.path); err != nil {
					b.Skip("make build makes the guest")
				}
			}
			for b.Loop() {
				h := fiberHost(b, plugin, n)
				before := proportional(b)
				began := time.Now()
				startFibers(b, h, n)
				b.ReportMetric(time.Since(began).Seconds(), "s-to-start")
				total := proportional(b)
				b.ReportMetric(float64(total)/(1<<30), "GiB-PSS")
				b.ReportMetric(float64(kib(b, "/proc/self/status", "VmRSS:"))/(1<<30), "GiB-RSS")
				b.ReportMetric(float64(total-before)/float64(n)/1024, "KiB-PSS/fiber")
				b.ReportMetric(float64(lines(b, "/proc/self/maps")), "mappings")
			}
		})
	}
}

// startFibers starts fibers and waits until each has answered once and is idle.
func startFibers(b *testing.B, h jobhost.Server, n int) {
	b.Helper()
	var group sync.WaitGroup
	ids := make(chan string)
	for range 8 {
		group.Go(func() {
			for id := range ids {
				spec := jobhost.FiberSpec{ID: id, Worker: "fiber", Init: []byte("ready")}
				if _, err := h.StartFiber(b.Context(), spec); err != nil {
					b.Error(err)
					continue
				}
				for _, err := range h.WatchFiber(b.Context(), jobhost.FiberQuery{ID: id, Replay: true}) {
					if err != nil {
						b.Errorf("%s: %v", id, err)
					}
					break
				}
			}
		})
	}
	for i := range n {
		ids <- fmt.Sprint("f", i)
	}
	close(ids)
	group.Wait()
	for filter := (jobhost.FiberFilter{Limit: 1, Status: jobhost.FiberRunning}); ; {
		page, err := h.Fibers(b.Context(), filter)
		if err != nil {
			b.Fatal(err)
		}
		if len(page.Fibers) == 0 {
			return
		}
	}
}

// proportional is the memory of this process, in bytes, after garbage was collected.
func proportional(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	return kib(b, "/proc/self/smaps_rollup", "Pss:")
}

// kib reads a line of a file of /proc, in bytes.
func kib(b *testing.B, path, name string) int64 {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Skip("there is no /proc here")
	}
	_, rest, _ := strings.Cut(string(data), name)
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n << 10
}

func lines(b *testing.B, path string) int {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}
