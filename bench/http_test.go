package bench

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// served starts jobhost in a process of its own, and returns a client of it.
func served(b *testing.B, worker string) *client.Client {
	b.Helper()
	dir := b.TempDir()
	binary := filepath.Join(dir, "jobhost")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "github.com/jobhost/jobhost/cmd/jobhost").CombinedOutput(); err != nil {
		b.Fatalf("build jobhost: %v\n%s", err, out)
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := listener.Addr().String()
	manifest := fmt.Sprintf("[host]\nlisten = %q\nlog_level = \"warn\"\n[worker.echo]\nplugin = \"outcomes.wasm\"\nentry = \"echo\"\n%s\n", addr, worker)
	err = errors.Join(listener.Close(),
		os.WriteFile(filepath.Join(dir, "outcomes.wasm"), guests.Outcomes, 0o600),
		os.WriteFile(filepath.Join(dir, "manifest.toml"), []byte(manifest), 0o600))
	if err != nil {
		b.Fatal(err)
	}
	host := exec.CommandContext(b.Context(), binary, "run", "-f", "manifest.toml")
	host.Dir, host.Cancel = dir, func() error { return host.Process.Signal(syscall.SIGTERM) }
	host.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := host.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = host.Process.Signal(syscall.SIGTERM)
		_ = host.Wait()
	})
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		resp, err := http.Get("http://" + addr + "/readyz") //nolint:noctx // of a test
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Since(began) > time.Minute {
			b.Fatalf("the host is not ready: %v", err)
		}
	}
	token, err := os.ReadFile(filepath.Join(dir, "data", "token"))
	if err != nil {
		b.Fatal(err)
	}
	c := client.New("http://"+addr, strings.TrimSpace(string(token)))
	b.Cleanup(c.Close)
	return c
}

// BenchmarkHTTP submits jobs over loopback, from this process to another one
// that makes each durable and runs it.
func BenchmarkHTTP(b *testing.B) {
	b.Run("single/connections=64", func(b *testing.B) {
		c := served(b, "")
		b.SetParallelism(32)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.Submit(b.Context(), jobhost.Spec{Worker: "echo", Payload: []byte("hello")}); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("batcher/callers=256", func(b *testing.B) {
		batcher := served(b, "").NewBatcher(0)
		b.SetParallelism(128)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := batcher.Submit(b.Context(), jobhost.Spec{Worker: "echo", Payload: []byte("hello")}); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("batch=1000/connections=4", func(b *testing.B) {
		c := served(b, "")
		specs := slices.Repeat([]jobhost.Spec{{Worker: "echo", Payload: []byte("hello")}}, 1000)
		b.SetParallelism(2)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.SubmitBatch(b.Context(), specs); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N*len(specs))/b.Elapsed().Seconds(), "jobs/s")
	})
}

// BenchmarkOverload submits from 256 connections to a queue that holds 200 jobs.
func BenchmarkOverload(b *testing.B) {
	c := served(b, "queue_capacity = 200")
	var accepted, refused atomic.Int64
	times := make([]time.Duration, b.N)
	b.SetParallelism(128)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			began := time.Now()
			_, err := c.Submit(b.Context(), jobhost.Spec{Worker: "echo", Payload: []byte("hello")})
			switch jobhost.CodeOf(err) {
			case "":
				times[accepted.Add(1)-1] = time.Since(began)
			case jobhost.CodeExhausted:
				refused.Add(1)
			default:
				b.Error(err)
				return
			}
		}
	})
	n := accepted.Load()
	slices.Sort(times[:n])
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "accepted/s")
	b.ReportMetric(float64(refused.Load())/b.Elapsed().Seconds(), "refused/s")
	b.ReportMetric(float64(times[n*99/100].Microseconds())/1000, "ms-p99-accepted")
}
