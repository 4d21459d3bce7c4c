package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// TestMain makes the benchmarks' own binary the program that they start: a sandbox process, a guard, and a native
// plugin.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "sandbox":
		process.ServeSandbox(openWasm)
	case len(os.Args) > 1 && os.Args[1] == "guard":
		os.Exit(process.ServeGuard(os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == "native":
		link.Serve(nativeNoop{})
	default:
		os.Exit(m.Run())
	}
}

// openWasm opens the engine that sandboxes run on.
func openWasm(cache string, logger *slog.Logger) (runtime.Engine, error) {
	return wasm.New(wasm.Config{CacheDir: cache, Logger: logger})
}

// nativeNoop is a native plugin that does nothing.
type nativeNoop struct{}

// Describe implements [link.Program].
func (nativeNoop) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Protocol: link.Protocol}, nil
}

// Release implements [link.Program].
func (nativeNoop) Release(uint32) {}

// Run implements [link.Program].
func (nativeNoop) Run(context.Context, *link.Run) *protocol.Result { return &protocol.Result{} }

// executable is this program.
func executable(b *testing.B) string {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return exe
}

// enginesOf returns the engines that a worker of a placement needs.
func enginesOf(b *testing.B) *runtime.Engines {
	b.Helper()
	dir := b.TempDir()
	inline, err := openWasm(filepath.Join(dir, "inline"), nil)
	if err != nil {
		b.Fatal(err)
	}
	sandboxes, err := process.NewSandboxes(process.SandboxConfig{Command: []string{executable(b), "sandbox"}, CacheDir: filepath.Join(dir, "processes")})
	if err != nil {
		b.Fatal(err)
	}
	natives, err := process.NewNatives(process.NativeConfig{Guard: []string{executable(b), "guard"}})
	if err != nil {
		b.Fatal(err)
	}
	return &runtime.Engines{Inline: inline, Sandboxes: sandboxes, Native: natives}
}

// placement is a way to run a worker.
type placement struct {
	name      string
	where     runtime.Placement
	slots     int
	processes int
}

// placed is a host with one worker, and a way to wait for the end of its jobs.
type placed struct {
	host  jobhost.Server
	ended sync.WaitGroup
}

// runPlaced runs a host whose worker is placed somewhere.
func runPlaced(b *testing.B, p placement, plugin []byte) *placed {
	b.Helper()
	h := &placed{}
	h.host = runWorker(b, enginesOf(b), host.Worker{Name: "noop", Plugin: plugin, Sandbox: p.where, PoolSize: p.slots, Processes: p.processes},
		func(e jobhost.Event) {
			if e.Kind == jobhost.EventEnded {
				h.ended.Done()
			}
		}, sqlitedb.Observer{})
	return h
}

// submit submits a job and counts it in ended.
func (h *placed) submit(b *testing.B, payload []byte) {
	h.ended.Add(1)
	if _, err := h.host.Submit(b.Context(), jobhost.Spec{Worker: "noop", Payload: payload}); err != nil {
		b.Error(err)
	}
}

// load has 256 producers submit jobs until stop, waits until all have ended, and returns their number.
func (h *placed) load(b *testing.B, payload []byte, stop *atomic.Bool) int {
	var n atomic.Int64
	var producers sync.WaitGroup
	for range 256 {
		producers.Go(func() {
			for !stop.Load() {
				h.submit(b, payload)
				n.Add(1)
			}
		})
	}
	producers.Wait()
	h.ended.Wait()
	return int(n.Load())
}

// BenchmarkProcessJobs measures durable jobs whose sandboxes are in the host, and in a process of their own, which take
// turns: a no-op, and the SHA-256 of 64 KiB.
func BenchmarkProcessJobs(b *testing.B) {
	placements := []placement{
		{"inline", runtime.SandboxInline, 2, 0},
		{"inline-64", runtime.SandboxInline, 64, 0},
		{"process-16", runtime.SandboxProcess, 16, 1},
		{"process-64", runtime.SandboxProcess, 64, 1},
		{"process-256", runtime.SandboxProcess, 256, 1},
		{"two-64", runtime.SandboxProcess, 64, 2},
	}
	for _, work := range []struct {
		name    string
		plugin  []byte
		payload []byte
	}{{"noop", guests.Noop, nil}, {"sha256", guests.SHA256, make([]byte, 64<<10)}} {
		b.Run(work.name, func(b *testing.B) {
			names := make([]string, len(placements))
			turns := make([]func(*atomic.Bool) int, len(placements))
			for i, p := range placements {
				h := runPlaced(b, p, work.plugin)
				names[i] = p.name
				turns[i] = func(stop *atomic.Bool) int { return h.load(b, work.payload, stop) }
			}
			contest(b, names, turns...)
		})
	}
}

// BenchmarkProcessIdle measures one job at a time on an idle host, from its submit to its durable end. Hosts whose
// sandboxes are inline and in processes take turns.
func BenchmarkProcessIdle(b *testing.B) {
	placements := []placement{
		{"inline", runtime.SandboxInline, 2, 0},
		{"process", runtime.SandboxProcess, 64, 1},
		{"two", runtime.SandboxProcess, 64, 2},
	}
	hosts := make([]*placed, len(placements))
	took := make([][]float64, len(placements))
	for i, p := range placements {
		hosts[i] = runPlaced(b, p, guests.Noop)
	}
	for round := 0; b.Loop(); round++ {
		for k := range hosts {
			i := (k + round) % len(hosts) // so that none always follows the same one
			began := time.Now()
			hosts[i].submit(b, nil)
			hosts[i].ended.Wait()
			took[i] = append(took[i], float64(time.Since(began).Nanoseconds())/1e3)
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, p := range placements {
		b.ReportMetric(median(took[i]), p.name+"_p50-µs")
		b.ReportMetric(took[i][len(took[i])*99/100], p.name+"_p99-µs")
	}
}

// attemptOf returns an attempt without a host behind it.
func attemptOf(input []byte) *hostcall.Attempt {
	return &hostcall.Attempt{
		Job: "0198b6a4-37a5-7c1e-9a3e-5d0c7e6f1a2b", Worker: "noop", Tasks: 1, Number: 1, Priority: jobhost.Normal, Input: input,
		Limits: hostcall.Limits{OutputBytes: 1 << 20}, Deadline: time.Now().Add(time.Hour),
	}
}

// BenchmarkProcessRun measures attempts without a queue around them: through the stream of a sandbox process, and of
// a native plugin in Go.
func BenchmarkProcessRun(b *testing.B) {
	program, err := os.ReadFile(executable(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []struct {
		name string
		src  runtime.Source
	}{
		{"inline", runtime.Source{Bytes: guests.Noop}},
		{"sandbox", runtime.Source{Bytes: guests.Noop, Sandbox: runtime.SandboxProcess}},
		{"native", runtime.Source{
			Bytes: program, ABI: runtime.ABIProcess, System: runtime.System{Args: []string{"native"}}, Limits: runtime.Limits{MemoryBytes: 1 << 30},
		}},
	} {
		for _, parallel := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/parallel=%d", kind.name, parallel), func(b *testing.B) {
				engines := enginesOf(b)
				kind.src.Worker, kind.src.Path = "noop", executable(b)
				p, err := engines.Load(b.Context(), kind.src)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _, _ = p.Close(context.Background()), engines.Close(context.Background()) }()
				var left atomic.Int64
				left.Store(int64(b.N))
				var running sync.WaitGroup
				b.ResetTimer()
				for range parallel {
					running.Go(func() {
						i, err := p.Instantiate(b.Context())
						if err != nil {
							b.Error(err)
							return
						}
						defer func() { _ = i.Close(context.Background()) }()
						at := attemptOf(nil)
						for left.Add(-1) >= 0 {
							if r := i.Run(b.Context(), at); r.Outcome.Kind != jobhost.OutcomeSucceeded {
								b.Error(r.Outcome.Failure)
							}
						}
					})
				}
				running.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			})
		}
	}
}

// BenchmarkProcessKilled measures how long a slot is without a process after that was killed: until the next
// attempt in it has succeeded.
func BenchmarkProcessKilled(b *testing.B) {
	for _, guest := range []struct {
		name   string
		plugin []byte
	}{{"c", guests.Noop}} {
		b.Run(guest.name, func(b *testing.B) {
			started := make(chan int, 8)
			sandboxes, err := process.NewSandboxes(process.SandboxConfig{
				Command: []string{executable(b), "sandbox"}, CacheDir: b.TempDir(), Observer: pids(started),
			})
			if err != nil {
				b.Fatal(err)
			}
			p, err := sandboxes.Load(b.Context(), runtime.Source{Worker: "noop", Bytes: guest.plugin})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _, _ = p.Close(context.Background()), sandboxes.Close(context.Background()) }()
			i, err := p.Instantiate(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			run := func() jobhost.OutcomeKind { return i.Run(b.Context(), attemptOf(nil)).Outcome.Kind }
			for run() != jobhost.OutcomeSucceeded {
			}
			var took []time.Duration
			for b.Loop() {
				if err := syscall.Kill(<-started, syscall.SIGKILL); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				for run() != jobhost.OutcomeSucceeded || len(started) == 0 {
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(took[len(took)-1])/1e6, "max-ms")
		})
	}
}

// pids receives the pids of processes.
type pids chan int

// Started implements [process.Observer].
func (p pids) Started(_ string, pid int) { p <- pid }

// Ended implements [process.Observer].
func (pids) Ended(string, string) {}
