package bench

import (
	"context"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// BenchmarkGuestCall measures one attempt in a warm sandbox, deadline included.
func BenchmarkGuestCall(b *testing.B) {
	for _, bb := range []struct {
		name  string
		guest []byte
		input []byte
	}{
		{"noop", guests.Noop, nil},
		{"echo 64 B", guests.Echo, make([]byte, 64)},
		{"echo 16 KiB", guests.Echo, make([]byte, 16<<10)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			engine, err := wasm.New(wasm.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer engine.Close(context.Background())
			plugin, err := engine.Load(b.Context(), runtime.Source{Worker: "bench", Bytes: bb.guest, Limits: runtime.DefaultLimits()})
			if err != nil {
				b.Fatal(err)
			}
			sandbox := runtime.NewSandbox(plugin, nil)
			defer sandbox.Close(context.Background())
			var at hostcall.Attempt
			b.ReportAllocs()
			for b.Loop() {
				at.Reset()
				at.Input = bb.input
				at.Limits.OutputBytes = 1 << 20
				at.Deadline = time.Now().Add(30 * time.Second)
				if outcome := sandbox.Run(b.Context(), &at); outcome.Failure != nil {
					b.Fatal(outcome.Failure.Message)
				}
			}
		})
	}
}
