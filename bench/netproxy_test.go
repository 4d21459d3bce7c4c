package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/guard"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// envServer makes the test binary a server, in a process of its own: ten thousand
// connections have twenty thousand ends, which is more than one process may have.
const envServer = "JOBHOST_BENCH_SERVER"

// TestServe is the server; it ends with its standard input.
func TestServe(t *testing.T) {
	if os.Getenv(envServer) == "" {
		t.Skip("is for benchmarks")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/fast", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(time.Second)
		_, _ = io.WriteString(w, "done")
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	_, _ = fmt.Fprintln(os.Stderr, listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = server.Close()
}

// echo starts the server and returns its URL.
func echo(b *testing.B) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestServe$")
	cmd.Env = append(os.Environ(), envServer+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr)
}

func local(b *testing.B, origin string) policy.Policy {
	b.Helper()
	rule, err := policy.ParseRule(origin)
	if err != nil {
		b.Fatal(err)
	}
	private, err := policy.ParsePrefix("127.0.0.0/8")
	if err != nil {
		b.Fatal(err)
	}
	return policy.Policy{Allow: []policy.Rule{rule}, AllowPrivate: []netip.Prefix{private}}
}

// plain is net/http as one would tune it for this.
func plain() *http.Transport {
	return &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000, MaxConnsPerHost: 1000, DisableCompression: true}
}

var kilobyte = bytes.Repeat([]byte("x"), 1<<10)

const (
	atOnce = 64
	turn   = 250 * time.Millisecond
)

// closed runs atOnce loops that each wait for their request, until stop.
func closed(b *testing.B, stop *atomic.Bool, do func() error) int {
	var n atomic.Int64
	var loops sync.WaitGroup
	for range atOnce {
		loops.Go(func() {
			for !stop.Load() {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	loops.Wait()
	return int(n.Load())
}

// chain sends one request after the other, each from the handler of the one before.
type chain struct {
	b    *testing.B
	pool netproxy.Pool
	spec *netproxy.RequestSpec
	stop *atomic.Bool
	n    *atomic.Int64
}

func (c *chain) next() {
	r, err := netproxy.NewRequest(*c.spec)
	if err == nil {
		err = c.pool.Enqueue(netproxy.NewTask(r, c, "cb", nil))
	}
	if err != nil {
		c.b.Error(err)
	}
}

func (c *chain) OnComplete(_ context.Context, _ *netproxy.Task, r *netproxy.Response) {
	if len(r.Body) != len(kilobyte) {
		c.b.Errorf("a body of %d bytes", len(r.Body))
	}
	c.n.Add(1)
	if !c.stop.Load() {
		c.next()
	}
}

func (c *chain) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) { c.b.Error(e) }
func (c *chain) Retry(context.Context, *netproxy.Task)                          {}

// BenchmarkNetproxy sends POSTs of 1 KB that are echoed, 64 at a time, to another process.
// "bare" is net/http, tuned.
func BenchmarkNetproxy(b *testing.B) {
	url := echo(b)
	transport := plain()
	bare := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	c, err := netproxy.New(netproxy.Config{Policy: local(b, url), ConnsPerHost: 1000})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: c})
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Stop(time.Second) }()
	// The host names requests after their job.
	spec := netproxy.RequestSpec{ID: "0199f0e2-7e2b-7000-8000-000000000000/0/1", Method: "POST", URL: url + "/fast", Body: kilobyte}
	contest(b, []string{"bare", "client", "processor"},
		func(stop *atomic.Bool) int {
			return closed(b, stop, func() error { return post(bare, url+"/fast") })
		},
		func(stop *atomic.Bool) int {
			return closed(b, stop, func() error {
				r, err := netproxy.NewRequest(spec)
				if err != nil {
					return err
				}
				_, err = c.Call(context.Background(), r)
				return err
			})
		},
		func(stop *atomic.Bool) int {
			var n atomic.Int64
			for range atOnce {
				(&chain{b, p, &spec, stop, &n}).next()
			}
			_ = p.Wait(context.Background())
			return int(n.Load())
		})
}

func post(client *http.Client, url string) error {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(kilobyte))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	return err
}

// BenchmarkGuard is the same transport with and without the guard.
func BenchmarkGuard(b *testing.B) {
	url := echo(b)
	transport := plain()
	defer transport.CloseIdleConnections()
	guarded := guard.New(guard.Config{Policy: local(b, url), IdlePerHost: 1000, ConnsPerHost: 1000})
	defer guarded.CloseIdleConnections()
	with := func(t http.RoundTripper) func(*atomic.Bool) int {
		client := &http.Client{Transport: t}
		return func(stop *atomic.Bool) int {
			return closed(b, stop, func() error { return post(client, url+"/fast") })
		}
	}
	contest(b, []string{"bare", "guarded"}, with(transport), with(guarded))
}

// counter is a handler that lets the next task begin.
type counter struct {
	b    *testing.B
	free chan struct{}
}

func (c counter) OnComplete(_ context.Context, _ *netproxy.Task, r *netproxy.Response) {
	if len(r.Body) != len(kilobyte) {
		c.b.Errorf("a body of %d bytes", len(r.Body))
	}
	c.free <- struct{}{}
}

func (c counter) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) {
	c.b.Error(e)
	c.free <- struct{}{}
}
func (c counter) Retry(context.Context, *netproxy.Task) { c.free <- struct{}{} }

// BenchmarkEnqueue says how long Enqueue takes while 200 requests are under way.
func BenchmarkEnqueue(b *testing.B) {
	url := echo(b)
	c, err := netproxy.New(netproxy.Config{Policy: local(b, url)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: c})
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Stop(time.Second) }()
	h := counter{b, make(chan struct{}, 200)}
	for range cap(h.free) {
		h.free <- struct{}{}
	}
	r, err := netproxy.NewRequest(netproxy.RequestSpec{Method: "POST", URL: url + "/fast", Body: kilobyte})
	if err != nil {
		b.Fatal(err)
	}
	var took []float64
	for b.Loop() {
		<-h.free
		task := netproxy.NewTask(r, h, "cb", nil)
		began := time.Now()
		err := p.Enqueue(task)
		took = append(took, float64(time.Since(began).Nanoseconds())/1e3)
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = p.Wait(context.Background())
	slices.Sort(took)
	for name, part := range map[string]int{"p50-µs": 500, "p99-µs": 990, "p999-µs": 999} {
		b.ReportMetric(took[len(took)*part/1000], name)
	}
}

// BenchmarkInFlight has 10,000 requests of a second each under way at once.
func BenchmarkInFlight(b *testing.B) {
	const requests = 10_000
	url := echo(b)
	for b.Loop() {
		c, err := netproxy.New(netproxy.Config{Policy: local(b, url), ConnsPerHost: requests})
		if err != nil {
			b.Fatal(err)
		}
		p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: c, MaxConnections: requests})
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		h := slow{b: b}
		runtime.GC()
		debug.FreeOSMemory()
		before := rss(b)
		began := time.Now()
		for range requests {
			r, err := netproxy.NewRequest(netproxy.RequestSpec{URL: url + "/slow"})
			if err == nil {
				err = p.Enqueue(netproxy.NewTask(r, &h, "cb", nil))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		most := before
		for p.Stats().Pending > 0 {
			most = max(most, rss(b))
			<-time.After(20 * time.Millisecond)
		}
		took := time.Since(began)
		if h.done.Load() != requests {
			b.Errorf("%d of %d were answered", h.done.Load(), requests)
		}
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(most-before)/(1<<20), "MB")
		b.ReportMetric(float64(most-before)/requests/(1<<10), "KB/request")
		_ = p.Stop(time.Second)
		c.Close()
	}
}

type slow struct {
	b    *testing.B
	done atomic.Int64
}

func (s *slow) OnComplete(context.Context, *netproxy.Task, *netproxy.Response) { s.done.Add(1) }
func (s *slow) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) { s.b.Error(e) }
func (s *slow) Retry(context.Context, *netproxy.Task)                          {}

// rss is the resident memory of this process in bytes.
func rss(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("there is no /proc here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
