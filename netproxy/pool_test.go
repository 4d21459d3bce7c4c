package netproxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
)

// heard is a call of a handler.
type heard struct {
	what string // "complete", "error" or "retry"
	task *netproxy.Task
	resp *netproxy.Response
	err  *netproxy.Error
	at   time.Time
}

// listener is a handler that records its calls, and then may do something.
type listener struct {
	then func(ctx context.Context)

	mu  sync.Mutex // protects all
	all []heard
}

func (l *listener) hear(ctx context.Context, h heard) {
	h.at = time.Now()
	l.mu.Lock()
	l.all = append(l.all, h)
	l.mu.Unlock()
	if l.then != nil {
		l.then(ctx)
	}
}

func (l *listener) OnComplete(ctx context.Context, t *netproxy.Task, r *netproxy.Response) {
	l.hear(ctx, heard{what: "complete", task: t, resp: r})
}

func (l *listener) OnError(ctx context.Context, t *netproxy.Task, e *netproxy.Error) {
	l.hear(ctx, heard{what: "error", task: t, err: e})
}

func (l *listener) Retry(ctx context.Context, t *netproxy.Task) {
	l.hear(ctx, heard{what: "retry", task: t})
}

// heard returns the calls, as words.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for _, h := range l.all {
		words = append(words, h.what)
	}
	return strings.Join(words, " ")
}

// call returns call number i.
func (l *listener) call(i int) heard { return l.since(i)[0] }

// since returns the calls from number i on.
func (l *listener) since(i int) []heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all[i:])
}

func (l *listener) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

// refusals is an observer that records the tasks that a pool refused.
type refusals struct {
	limits
	codes []string
}

func (r *refusals) Refused(_ *netproxy.Task, code string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes = append(r.codes, code)
}

// poolBench is a pool, with a server that answers /N after N seconds.
type poolBench struct {
	*testing.T
	*netproxy.Processor
	listener
	seen refusals
}

// testPool runs a test with a processor, in a bubble.
func testPool(t *testing.T, cfg netproxy.ProcessorConfig, test func(b *poolBench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &poolBench{T: t}
		w := &wire{serve: answers(func(w io.Writer, r *http.Request) bool {
			var seconds, size int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d/%d", &seconds, &size)
			time.Sleep(time.Duration(seconds) * time.Second)
			return reply(w, 200, "", strings.Repeat("x", size))
		})}
		cfg.Client = w.client(t, netproxy.Config{Observer: &b.seen, MaxRetries: new(0)})
		b.Processor = netproxy.NewProcessor(cfg)
		test(b)
		if err := b.Stop(time.Hour); err != nil {
			t.Error(err)
		}
		if s := b.Stats(); s != (netproxy.Stats{}) {
			t.Errorf("after the end there is %+v", s)
		}
	})
}

func (b *poolBench) task(path string) *netproxy.Task {
	b.Helper()
	return netproxy.NewTask(newRequest(b, netproxy.RequestSpec{URL: "http://a.example" + path}), b, "callback", []byte("args"))
}

// enqueue enqueues a task and lets it get as far as it can without time passing.
func (b *poolBench) enqueue(t *netproxy.Task) error {
	err := b.Enqueue(t)
	synctest.Wait()
	return err
}

func (b *poolBench) start() {
	b.Helper()
	if err := b.Start(); err != nil {
		b.Fatal(err)
	}
}

func (b *poolBench) want(heard string, state netproxy.State) {
	b.Helper()
	synctest.Wait()
	if got := b.heard(); got != heard || b.State() != state {
		b.Fatalf("heard %q in state %v, want %q in state %v", got, b.State(), heard, state)
	}
}

func TestPoolStates(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{}, func(b *poolBench) {
		closed := func() {
			b.Helper()
			if err := b.enqueue(b.task("/0")); !errors.Is(err, netproxy.ErrClosed) || jobhost.CodeOf(err) != jobhost.CodeUnavailable {
				b.Errorf("%v: got %v", b.State(), err)
			}
		}
		closed()
		b.Drain()
		b.want("", netproxy.Stopped)
		for range 2 { // it can be restarted
			b.forget()
			b.start()
			if err := b.Start(); err == nil {
				b.Error("it starts twice")
			}
			if err := b.enqueue(b.task("/5")); err != nil {
				b.Fatal(err)
			}
			b.want("", netproxy.Running)
			b.Drain()
			b.want("", netproxy.Draining)
			closed()
			if err := b.Start(); err == nil {
				b.Error("it starts while it drains")
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("the wait ended with %v", err)
			}
			cancel()
			if err := b.Wait(context.Background()); err != nil {
				b.Error(err)
			}
			b.want("complete", netproxy.Draining)
			if err := b.Stop(0); err != nil {
				b.Error(err)
			}
			b.want("complete", netproxy.Stopped)
			closed()
		}
		if err := b.Stop(time.Second); err != nil {
			b.Error(err)
		}
		if got := strings.Join(b.seen.codes, " "); got != "closed closed closed closed closed" {
			b.Errorf("the observer heard %s", got)
		}
	})
}

func TestPoolResults(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{}, func(b *poolBench) {
		b.start()
		began := time.Now()
		task := b.task("/3/10")
		if !task.Enqueued().IsZero() || !task.Started().IsZero() || !task.Completed().IsZero() {
			b.Error("a new task has times")
		}
		if err := b.enqueue(task); err != nil {
			b.Fatal(err)
		}
		if err := b.Enqueue(task); !errors.Is(err, netproxy.ErrTaskUsed) {
			b.Errorf("enqueued twice: %v", err)
		}
		time.Sleep(4 * time.Second)
		b.want("complete", netproxy.Running)
		h := b.call(0)
		if h.task != task || h.task.Callback() != "callback" || string(h.resp.Args) != "args" || string(h.task.Args()) != "args" || len(h.resp.Body) != 10 || h.resp.Duration != 3*time.Second {
			b.Errorf("got %+v", h)
		}
		if !task.Enqueued().Equal(began) || !task.Started().Equal(began) || !task.Completed().Equal(began.Add(3*time.Second)) {
			b.Errorf("enqueued %v, started %v, completed %v", task.Enqueued(), task.Started(), task.Completed())
		}
		if task.Cancel() {
			b.Error("a task that is complete is cancelled")
		}
		denied := netproxy.NewTask(newRequest(b, netproxy.RequestSpec{URL: "http://10.0.0.1/"}), b, "", []byte("args"))
		raised := netproxy.NewTask(newRequest(b, netproxy.RequestSpec{URL: "http://a.example/"}), b, "", nil)
		for _, task := range []*netproxy.Task{denied, raised} {
			if err := b.enqueue(task); err != nil {
				b.Fatal(err)
			}
		}
		b.want("complete error complete", netproxy.Running)
		if e := b.call(1).err; e.Code != netproxy.CodeDenied || string(e.Args) != "args" {
			b.Errorf("got %+v", e)
		}
	})
}

func TestPoolExhausted(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{MaxConnections: 2}, func(b *poolBench) {
		b.start()
		b.then = func(context.Context) { time.Sleep(5 * time.Second) } // the time of handlers counts too
		for _, path := range []string{"/1", "/2"} {
			if err := b.enqueue(b.task(path)); err != nil {
				b.Fatal(err)
			}
		}
		full := func() {
			b.Helper()
			if err := b.enqueue(b.task("/1")); !errors.Is(err, netproxy.ErrExhausted) || jobhost.CodeOf(err) != jobhost.CodeExhausted {
				b.Errorf("got %v", err)
			}
		}
		full()
		time.Sleep(3 * time.Second)
		if s := b.Stats(); s.Pending != 2 || s.Delivering != 2 || s.InFlight != 0 {
			b.Errorf("got %+v", s)
		}
		full()
		time.Sleep(5 * time.Second)
		if err := b.enqueue(b.task("/1")); err != nil {
			b.Error(err)
		}
		if len(b.seen.codes) != 2 || b.seen.codes[0] != "exhausted" || b.seen.names[0] != netproxy.LimitConnections {
			b.Errorf("the observer heard %v, %v", b.seen.codes, b.seen.names)
		}
	})
}

func TestPoolCancel(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{}, func(b *poolBench) {
		b.start()
		task, other, early := b.task("/10"), b.task("/10"), b.task("/0")
		for _, t := range []*netproxy.Task{task, other} {
			if err := b.enqueue(t); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if !task.Cancel() || task.Cancel() {
			b.Error("it is not cancelled, or twice")
		}
		b.want("", netproxy.Running)
		if s := b.Stats(); s.Pending != 1 || s.InFlight != 1 {
			b.Errorf("got %+v", s)
		}
		if !early.Cancel() || !errors.Is(b.enqueue(early), netproxy.ErrTaskUsed) {
			b.Error("a task that was cancelled before can be enqueued")
		}
		time.Sleep(20 * time.Second)
		b.want("complete", netproxy.Running)
		if b.call(0).task != other {
			b.Error("the wrong one was cancelled")
		}
		if got := b.seen.ended[0]; got.Code != netproxy.CodeCancelled || got.Duration != time.Second {
			b.Errorf("the observer heard %+v", got)
		}
	})
}

func TestPoolStop(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{Handlers: 2}, func(b *poolBench) {
		b.start()
		began := time.Now()
		for _, path := range []string{"/2", "/30", "/30", "/30", "/4"} {
			if err := b.enqueue(b.task(path)); err != nil {
				b.Fatal(err)
			}
		}
		var stops sync.WaitGroup
		for range 3 {
			stops.Go(func() {
				if err := b.Stop(5 * time.Second); err != nil {
					b.Error(err)
				}
			})
		}
		b.want("", netproxy.Stopping)
		if err := b.enqueue(b.task("/0")); !errors.Is(err, netproxy.ErrClosed) {
			b.Errorf("got %v", err)
		}
		stops.Wait()
		if took := time.Since(began); took != 5*time.Second {
			b.Errorf("it took %v to stop", took)
		}
		b.want("complete complete retry retry retry", netproxy.Stopped)
		for _, h := range b.since(2) {
			if h.task.Cancel() {
				b.Error("a task that was given back is cancelled")
			}
		}
	})
}
