package op_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/op"
)

func BenchmarkAlways(b *testing.B) {
	o, ctx := op.Always(1), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = op.Perform(ctx, o)
	}
}

// BenchmarkChoiceReady performs a choice of two channel arms that are both ready.
func BenchmarkChoiceReady(b *testing.B) {
	x, y := op.NewChan[int](1), op.NewChan[int](1)
	_, _, _ = op.TryPerform(x.Send(1))
	both, ctx := op.Choice(sent(y, 1), x.Recv()), b.Context()
	back := op.Choice(sent(x, 1), y.Recv())
	b.ReportAllocs()
	for b.Loop() {
		// One of the two happens, and then its opposite.
		_, _ = op.Perform(ctx, both)
		_, _ = op.Perform(ctx, back)
	}
}

// BenchmarkChoiceBuiltReady also creates the choice each time.
func BenchmarkChoiceBuiltReady(b *testing.B) {
	x, y := op.NewChan[int](1), op.NewChan[int](1)
	ctx := b.Context()
	_, _, _ = op.TryPerform(x.Send(1))
	_, _, _ = op.TryPerform(y.Send(1))
	b.ReportAllocs()
	for b.Loop() {
		v, _ := op.Perform(ctx, op.Choice(x.Recv(), y.Recv()))
		_, _, _ = op.TryPerform(x.Send(v))
		_, _, _ = op.TryPerform(y.Send(v))
	}
}

func BenchmarkChoiceNative(b *testing.B) {
	x, y := make(chan int, 1), make(chan int, 1)
	x <- 1
	for b.Loop() {
		select {
		case y <- 1:
		case <-x:
		}
		select {
		case x <- 1:
		case <-y:
		}
	}
}

// BenchmarkRendezvous is a round trip between two goroutines: two hand-overs.
func BenchmarkRendezvous(b *testing.B) {
	there, back := op.NewChan[int](0), op.NewChan[int](0)
	go func() {
		for {
			v, err := op.PerformRaw(there.Recv())
			if err != nil {
				return
			}
			_, _ = op.PerformRaw(back.Send(v))
		}
	}()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = op.Perform(ctx, there.Send(1))
		_, _ = op.Perform(ctx, back.Recv())
	}
	there.Close()
}

func BenchmarkRendezvousNative(b *testing.B) {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	done := b.Context().Done()
	for b.Loop() {
		select {
		case there <- 1:
		case <-done:
		}
		select {
		case <-back:
		case <-done:
		}
	}
	close(there)
}

// BenchmarkWait parks two arms and a timer and is woken by the first.
func BenchmarkWait(b *testing.B) {
	there, back := op.NewChan[int](0), op.NewChan[int](0)
	go func() {
		for {
			v, err := op.PerformRaw(there.Recv())
			if err != nil {
				return
			}
			_, _ = op.PerformRaw(back.Send(v))
		}
	}()
	ctx := b.Context()
	timeout := op.Wrap(op.After(time.Hour), func(time.Time) (int, error) { return 0, context.DeadlineExceeded })
	reply := op.Choice(back.Recv(), timeout)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = op.Perform(ctx, there.Send(1))
		_, _ = op.Perform(ctx, reply)
	}
	there.Close()
}

func BenchmarkBracket(b *testing.B) {
	o := op.Finally(op.Always(1), func(bool) {})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = op.Perform(ctx, o)
	}
}
