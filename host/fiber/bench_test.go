package fiber_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
)

func quiet(c *fiber.Config) {
	*c = fiber.Config{Scope: c.Scope, Max: jobhost.MaxFibers}
}

// BenchmarkRoundTrip is a message on its way to a body, and what that publishes
// on its way to a subscriber.
func BenchmarkRoundTrip(b *testing.B) {
	f := setup(b, quiet)
	f.start("a", echo)
	outputs, err := f.Subscribe(jobhost.FiberQuery{ID: "a"})
	if err != nil {
		b.Fatal(err)
	}
	defer outputs.Close()
	message := []byte("hello")
	b.ReportAllocs()
	for b.Loop() {
		if err := f.SendFiber(b.Context(), "a", message, false); err != nil {
			b.Fatal(err)
		}
		if _, err := outputs.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmit is a message that waits until it is taken.
func BenchmarkSubmit(b *testing.B) {
	f := setup(b, quiet)
	var self *fiber.Fiber
	ready := make(chan struct{})
	f.start("a", func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		self = f
		close(ready)
		return deaf(ctx, f)
	})
	<-ready
	message := []byte("hello")
	b.ReportAllocs()
	for b.Loop() {
		if err := f.SendFiber(b.Context(), "a", message, false); err != nil {
			b.Fatal(err)
		}
		if _, ok, err := self.Take(); !ok {
			b.Fatal(err)
		}
	}
}

// BenchmarkStartFinish is a fiber that ends at once.
func BenchmarkStartFinish(b *testing.B) {
	f := setup(b, quiet)
	body := returns("")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Start(b.Context(), spec("a"), body, nil); err != nil {
			b.Fatal(err)
		}
		if _, err := f.Wait(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdle tells what 10,000 fibers hold that wait for input.
func BenchmarkIdle(b *testing.B) {
	const fibers = 10_000
	for b.Loop() {
		f := setup(b, quiet)
		before := memory()
		for i := range fibers {
			f.start(fmt.Sprint("fiber-", i), echo)
		}
		for i := range fibers {
			for f.get(fmt.Sprint("fiber-", i)).Status != jobhost.FiberIdle {
				runtime.Gosched()
			}
		}
		after := memory()
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/fibers, "heap-B/fiber")
		b.ReportMetric(float64(after.StackInuse-before.StackInuse)/fibers, "stack-B/fiber")
		f.root.Cancel(nil)
		_, _ = f.root.Join(context.Background())
	}
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// BenchmarkList is a page of 100 of 10,000 fibers.
func BenchmarkList(b *testing.B) {
	f := setup(b, quiet)
	var started sync.WaitGroup
	for i := range 10_000 {
		started.Go(func() { f.start(fmt.Sprint("fiber-", i), echo) })
	}
	started.Wait()
	b.ReportAllocs()
	for b.Loop() {
		if page, err := f.Fibers(b.Context(), jobhost.FiberFilter{Limit: 100, Cursor: "fiber-5"}); len(page.Fibers) != 100 || err != nil {
			b.Fatal(len(page.Fibers), err)
		}
	}
}
