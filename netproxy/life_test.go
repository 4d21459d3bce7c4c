package netproxy_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/netproxy"
)

// step is something that happens to a processor.
type step struct {
	what string
	n    int
}

// recorder is a handler that counts the calls for each task.
type recorder struct {
	mu  sync.Mutex // protects all
	all map[*netproxy.Task][]string
}

func (h *recorder) tell(t *netproxy.Task, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[t] = append(h.all[t], what)
}

func (h *recorder) OnComplete(_ context.Context, t *netproxy.Task, _ *netproxy.Response) {
	h.tell(t, "complete")
}

func (h *recorder) OnError(_ context.Context, t *netproxy.Task, _ *netproxy.Error) {
	h.tell(t, "error")
}

func (h *recorder) Retry(_ context.Context, t *netproxy.Task) { h.tell(t, "retry") }

// Whatever happens, the handler is called once for each accepted task, unless
// it was cancelled, and nothing is left behind.
func TestLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var steps []step
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			what := rapid.SampledFrom([]string{"enqueue", "enqueue", "enqueue", "cancel", "wait", "drain", "stop", "start"}).Draw(rt, "what")
			steps = append(steps, step{what, rapid.IntRange(0, 7).Draw(rt, "n")})
		}
		var fault string
		synctest.Test(t, func(t *testing.T) { fault = live(t, steps) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

// live takes the steps and returns what is wrong in the end.
func live(t *testing.T, steps []step) string {
	w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
		var seconds int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &seconds)
		time.Sleep(time.Duration(seconds) * time.Second)
		return seconds != 3 && reply(w, 200, "", "x") // 3 breaks the connection
	})}
	h := &recorder{all: map[*netproxy.Task][]string{}}
	const most = 5
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: w.client(t, netproxy.Config{MaxRetries: new(0)}), MaxConnections: most, Handlers: 2})
	var taken []*netproxy.Task
	cancelled := map[*netproxy.Task]bool{}
	stopped := true
	for _, s := range steps {
		switch s.what {
		case "enqueue":
			task := netproxy.NewTask(newRequest(t, netproxy.RequestSpec{Method: "POST", URL: fmt.Sprintf("http://a.example/%d", s.n)}), h, "", nil)
			before := p.Stats().Pending
			err := p.Enqueue(task)
			if (err == nil) != (p.State() == netproxy.Running && before < most) {
				return fmt.Sprintf("with %d tasks and %v: %v", before, p.State(), err)
			}
			if err == nil {
				taken = append(taken, task)
			}
		case "cancel":
			if s.n < len(taken) && taken[len(taken)-1-s.n].Cancel() {
				cancelled[taken[len(taken)-1-s.n]] = true
			}
		case "wait":
			time.Sleep(time.Duration(s.n) * time.Second / 2)
		case "drain":
			p.Drain()
		case "stop":
			stopped = true
			if err := p.Stop(time.Duration(s.n) * time.Second); err != nil {
				return err.Error()
			}
		case "start":
			_ = p.Start()
		}
	}
	if err := p.Stop(time.Second); err != nil {
		return err.Error()
	}
	for i, task := range taken {
		got := h.all[task]
		if cancelled[task] && len(got) > 0 || !cancelled[task] && len(got) != 1 || len(got) == 1 && got[0] == "retry" && !stopped {
			return fmt.Sprintf("task %d, cancelled %t: reported %v", i, cancelled[task], got)
		}
	}
	if s := p.Stats(); s != (netproxy.Stats{}) {
		return fmt.Sprintf("left behind: %+v", s)
	}
	return ""
}

// Enqueue, Cancel, Stop and Start from many goroutines at once.
func TestHammerProcessor(t *testing.T) {
	t.Parallel()
	w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool { return reply(w, 200, "", "x") })}
	h := &recorder{all: map[*netproxy.Task][]string{}}
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: w.client(t, netproxy.Config{MaxRetries: new(0)}), MaxConnections: 50, Handlers: 4})
	var taken sync.Map // from tasks to whether they were cancelled
	var all sync.WaitGroup
	var over atomic.Bool
	var enqueued atomic.Int64
	all.Go(func() {
		for i := range 30 {
			_ = p.Start()
			for enqueued.Load() < int64(10*(i+1)) {
				runtime.Gosched()
			}
			if i%3 == 0 {
				p.Drain()
			}
			_ = p.Stats()
			_ = p.Stop(0)
		}
		over.Store(true)
	})
	r := newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"})
	for range 4 {
		all.Go(func() {
			for !over.Load() {
				task := netproxy.NewTask(r, h, "", nil)
				if p.Enqueue(task) != nil {
					runtime.Gosched()
				} else {
					enqueued.Add(1)
					taken.Store(task, rand.IntN(3) == 0 && task.Cancel())
				}
			}
		})
	}
	all.Wait()
	n := 0
	taken.Range(func(key, value any) bool {
		n++
		task, cancelled := key.(*netproxy.Task), value.(bool)
		if got := h.all[task]; cancelled && len(got) > 0 || !cancelled && len(got) != 1 {
			t.Errorf("cancelled %t: reported %v", cancelled, got)
		}
		return true
	})
	if s := p.Stats(); s != (netproxy.Stats{}) || n == 0 {
		t.Errorf("%d tasks; left behind: %+v", n, s)
	}
}

// Clients are used by many goroutines, for more hosts than connections are kept
// to.
func TestHammerClient(t *testing.T) {
	t.Parallel()
	w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool { return reply(w, 200, "", r.Host) })}
	c := w.client(t, netproxy.Config{Hosts: 3, ConnsPerHost: 2, Destinations: netproxy.DestinationConfig{Breaker: breakerPolicy, Rate: fastRate}})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 100 {
				host := fmt.Sprintf("host%d.example", (i+g)%7)
				resp, err := call(t, c, netproxy.RequestSpec{URL: "http://" + host + "/"})
				if err != nil || string(resp.Body) != host {
					t.Errorf("%s: got %+v, %v", host, resp, err)
				}
			}
		})
	}
	all.Wait()
}

// Connections to the least recently used host are closed.
func TestHostsAreForgotten(t *testing.T) {
	t.Parallel()
	w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool { return reply(w, 200, "", r.Host) })}
	c := w.client(t, netproxy.Config{Hosts: 2})
	for i, tt := range []struct {
		host  string
		dials int64
	}{{"a", 1}, {"b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"b", 4}, {"c", 5}} {
		if _, err := call(t, c, netproxy.RequestSpec{URL: "http://" + tt.host + ".example/"}); err != nil {
			t.Fatal(err)
		}
		if got := w.dials.Load(); got != tt.dials {
			t.Errorf("%d: after %s there were %d connections, want %d", i, tt.host, got, tt.dials)
		}
	}
}
