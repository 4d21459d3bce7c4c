package bench

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// senders are sandboxes of guests.Ops that share what sends their requests.
type senders struct {
	b         *testing.B
	pool      netproxy.Pool
	sandboxes []*runtime.Sandbox
}

func newSenders(b *testing.B, url string, n int) *senders {
	b.Helper()
	grant := host.HTTP{MaxConnections: 20_000}
	grant.Policy, grant.ConnsPerHost = local(b, url), 20_000
	pool, err := grant.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pool.Stop(time.Second) })
	s := &senders{b: b, pool: pool}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close(context.Background()) })
	plugin, err := engine.Load(b.Context(), runtime.Source{Worker: "bench", Bytes: guests.Ops, Entry: "fetch"})
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		sandbox := runtime.NewSandbox(plugin, nil)
		b.Cleanup(func() { _ = sandbox.Close(context.Background()) })
		s.sandboxes = append(s.sandboxes, sandbox)
	}
	return s
}

// run lets a sandbox run an entry, which returns how many responses were good.
func (s *senders) run(i int, entry, input string) int {
	outcome := s.sandboxes[i].Run(context.Background(), &hostcall.Attempt{
		Job: "0199f0e2-7e2b-7000-8000-000000000000", Entry: entry, Input: []byte(input), Deadline: time.Now().Add(time.Minute),
		Services: &pending.Alone{Pool: s.pool},
		Limits: hostcall.Limits{
			OutputBytes: 100, LogBytes: 1000, LineBytes: 1000, OpenRequests: 4000, Requests: 1 << 30, RequestBytes: 1 << 40,
		},
	})
	n, err := strconv.Atoi(string(outcome.Output))
	if outcome.Kind != jobhost.OutcomeSucceeded || err != nil {
		s.b.Errorf("%v %q %+v", outcome.Kind, outcome.Output, outcome.Failure)
	}
	return n
}

// BenchmarkGuestHTTP sends POSTs of 1 KB that are echoed, 64 at a time, from guests
// to another process. "bare" is net/http, tuned.
func BenchmarkGuestHTTP(b *testing.B) {
	url := echo(b)
	transport := plain()
	bare := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	from := func(n int) func(*atomic.Bool) int {
		s := newSenders(b, url, n)
		input := fmt.Sprintf("200\n%d\nPOST %s/fast\n\n%s", atOnce/n, url, kilobyte)
		return func(stop *atomic.Bool) int {
			var good atomic.Int64
			var work sync.WaitGroup
			for i := range n {
				work.Go(func() {
					for !stop.Load() {
						good.Add(int64(s.run(i, "steady", input)))
					}
				})
			}
			work.Wait()
			return int(good.Load())
		}
	}
	contest(b, []string{"bare", "one", "four"},
		func(stop *atomic.Bool) int {
			return closed(b, stop, func() error { return post(bare, url+"/fast") })
		}, from(1), from(4))
}

// BenchmarkGuestInFlight sends 10,000 requests of a second each from four sandboxes.
func BenchmarkGuestInFlight(b *testing.B) {
	const many, sandboxes = 10_000, 4
	url := echo(b)
	s := newSenders(b, url, sandboxes)
	input := fmt.Sprintf("%d\nGET %s/slow", many/sandboxes, url)
	var took []float64
	for b.Loop() {
		began := time.Now()
		var good atomic.Int64
		var work sync.WaitGroup
		for i := range sandboxes {
			work.Go(func() { good.Add(int64(s.run(i, "many", input))) })
		}
		work.Wait()
		took = append(took, time.Since(began).Seconds())
		if good.Load() != many {
			b.Fatalf("%d responses", good.Load())
		}
	}
	b.ReportMetric(median(took), "s")
}
