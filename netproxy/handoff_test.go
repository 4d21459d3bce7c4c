package netproxy_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// beginner is a handler that begins a request when one has ended, and may wait until that has reached the server.
type beginner struct {
	pool  netproxy.Pool
	next  func() *netproxy.Task // nil = nothing more
	wait  func() bool
	came  chan struct{} // receives a value for each request that the server has received
	ended sync.WaitGroup
	fault atomic.Value
}

func (b *beginner) OnComplete(context.Context, *netproxy.Task, *netproxy.Response) {
	defer b.ended.Done()
	if t := b.next(); t != nil {
		b.begin(t)
		if b.wait() {
			<-b.came
		}
	}
}

func (b *beginner) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) {
	b.fault.Store(e.Error())
	b.ended.Done()
}

func (b *beginner) Retry(context.Context, *netproxy.Task) { b.ended.Done() }

func (b *beginner) begin(t *netproxy.Task) {
	b.ended.Add(1)
	if err := b.pool.Enqueue(t); err != nil {
		b.fault.Store(err.Error())
		b.ended.Done()
	}
}

// newBeginner returns a running processor whose handler begins n requests.
func newBeginner(t *testing.T, n int64, wait func() bool) *beginner {
	b := &beginner{wait: wait, came: make(chan struct{}, n)}
	w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool {
		b.came <- struct{}{}
		return reply(w, 200, "", "x")
	})}
	b.pool = netproxy.NewProcessor(netproxy.ProcessorConfig{Client: w.client(t, netproxy.Config{MaxRetries: new(0)}), Handlers: 4})
	r := newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"})
	var left atomic.Int64
	left.Store(n)
	b.next = func() *netproxy.Task {
		if left.Add(-1) < 0 {
			return nil
		}
		return netproxy.NewTask(r, b, "", nil)
	}
	if err := b.pool.Start(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *beginner) end(t *testing.T) {
	t.Helper()
	b.ended.Wait()
	if fault := b.fault.Load(); fault != nil {
		t.Error(fault)
	}
	if err := b.pool.Stop(time.Hour); err != nil {
		t.Error(err)
	}
	if s := b.pool.Stats(); s != (netproxy.Stats{}) {
		t.Errorf("after the end there is %+v", s)
	}
}

// TestHandlerWaitsForWhatItBegan has each handler wait for a request that it has enqueued, and that its own goroutine
// might have run: another takes it within two milliseconds. Otherwise the test would deadlock.
func TestHandlerWaitsForWhatItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		b := newBeginner(t, n, func() bool { return true })
		began := time.Now()
		b.begin(b.next())
		<-b.came
		b.end(t)
		if took := time.Since(began); took > n*2*time.Millisecond {
			t.Errorf("%d requests, one after the other, took %v", n, took)
		}
	})
}

// TestHandlersBeginWithoutDelay has handlers begin requests one after the other, none of which waits for a timer.
func TestHandlersBeginWithoutDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeginner(t, 1000, func() bool { return false })
		began := time.Now()
		for range 8 {
			b.begin(b.next())
		}
		b.end(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// TestHammerBegin has handlers begin requests, and every third one wait.
func TestHammerBegin(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	b := newBeginner(t, 3000, func() bool { return turn.Add(1)%3 == 0 })
	for range 16 {
		b.begin(b.next())
	}
	b.end(t)
}
