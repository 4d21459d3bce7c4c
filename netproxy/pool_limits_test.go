package netproxy_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

func TestPoolMemory(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{MaxBuffered: 250_000}, func(b *poolBench) {
		b.start()
		body := func(n int) *netproxy.Task {
			r := newRequest(b, netproxy.RequestSpec{Method: "POST", URL: "http://a.example/5", Body: make([]byte, n)})
			return netproxy.NewTask(r, b, "", nil)
		}
		if err := b.enqueue(body(200_000)); err != nil {
			b.Fatal(err)
		}
		if err := b.enqueue(body(60_000)); !errors.Is(err, netproxy.ErrExhausted) {
			b.Errorf("got %v", err)
		}
		if b.seen.names[0] != netproxy.LimitBuffered {
			b.Errorf("the observer heard of %v", b.seen.names)
		}
		if err := b.enqueue(b.task("/1/100000")); err != nil {
			b.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		b.want("error", netproxy.Running)
		if e := b.call(0).err; e.Code != netproxy.CodeExhausted || !e.Retryable() {
			b.Errorf("got %+v", e)
		}
		synctest.Wait()
		if s := b.Stats(); s.Buffered != 200_000 {
			b.Errorf("%d bytes are counted", s.Buffered)
		}
		time.Sleep(5 * time.Second)
		if err := b.enqueue(b.task("/1/100000")); err != nil {
			b.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		b.want("error complete complete", netproxy.Running)
	})
}

func TestPoolHandlers(t *testing.T) {
	testPool(t, netproxy.ProcessorConfig{Handlers: 3, HandlerTimeout: time.Second}, func(b *poolBench) {
		b.start()
		calls := 0
		var mu sync.Mutex
		b.then = func(ctx context.Context) {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls%2 == 0 {
				panic("a handler's fault")
			}
		}
		for range 7 {
			if err := b.enqueue(b.task("/0")); err != nil {
				b.Fatal(err)
			}
		}
		if s := b.Stats(); s.Pending != 7 {
			b.Errorf("got %+v", s)
		}
		began := time.Now()
		if err := b.Wait(context.Background()); err != nil {
			b.Error(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			b.Errorf("seven handlers of a second took %v, three at a time", took)
		}
	})
}
