package wasm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

func benchmarkRun(ctx context.Context, b *testing.B, module []byte, input string, deadline time.Time) {
	i := runtimetest.Instance(b, load(b, newEngine(b), module, runtime.Limits{}))
	at := &hostcall.Attempt{Input: []byte(input), Deadline: deadline, Limits: hostcall.Limits{OutputBytes: 1 << 20}}
	b.ReportAllocs()
	for b.Loop() {
		if got := i.Run(ctx, at).Outcome; got.Kind != jobhost.OutcomeSucceeded {
			b.Fatalf("%+v", got)
		}
	}
}

// BenchmarkRun is an attempt in a warm instance. The only allocation is the
// copy of the output.
func BenchmarkRun(b *testing.B) {
	input := strings.Repeat("x", 64)
	later := time.Now().Add(time.Hour)
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("noop", func(b *testing.B) { benchmarkRun(context.Background(), b, guests.Noop, "", time.Time{}) })
	b.Run("echo", func(b *testing.B) { benchmarkRun(context.Background(), b, guests.Echo, input, time.Time{}) })
	b.Run("echo/deadline", func(b *testing.B) { benchmarkRun(context.Background(), b, guests.Echo, input, later) })
	b.Run("echo/deadline+context", func(b *testing.B) { benchmarkRun(cancellable, b, guests.Echo, input, later) })
}

// BenchmarkInstantiate is a fresh sandbox.
func BenchmarkInstantiate(b *testing.B) {
	p := load(b, newEngine(b), guests.Echo, runtime.Limits{})
	b.ReportAllocs()
	for b.Loop() {
		i, err := p.Instantiate(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		_ = i.Close(b.Context())
	}
}
