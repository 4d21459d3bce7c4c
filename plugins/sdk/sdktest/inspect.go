package sdktest

import (
	"context"
	"errors"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// Info returns what the engine finds in a module before it runs.
func Info(t *testing.T, module []byte) runtime.Info {
	t.Helper()
	return load(t, module).Info()
}

// Start initialises a module, and returns what its author is told when it fails.
func Start(t *testing.T, module []byte) error {
	t.Helper()
	i, err := load(t, module).Instantiate(t.Context())
	if err != nil {
		return errors.New(err.Error() + "; " + jobhost.HintOf(err))
	}
	return i.Close(context.Background())
}

// Bench measures an attempt at the worker's own entry, in a sandbox that is reused
// as it is, and in one that is put back after each.
func Bench(b *testing.B, module []byte, input string) {
	for _, isolation := range []runtime.Isolation{runtime.IsolateInstance, runtime.IsolateJob} {
		b.Run(string(isolation), func(b *testing.B) {
			engine, err := wasm.New(wasm.Config{CacheDir: cacheDir})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = engine.Close(context.Background()) }()
			plugin, err := engine.Load(b.Context(), runtime.Source{Worker: "bench", Bytes: module, Isolation: isolation})
			if err != nil {
				b.Fatal(err)
			}
			box := runtime.NewSandbox(plugin, nil)
			defer func() { _ = box.Close(context.Background()) }()
			attempts(b, box, []byte(input))
		})
	}
}

func attempts(b *testing.B, box *runtime.Sandbox, input []byte) {
	b.Helper()
	var at hostcall.Attempt
	b.ReportAllocs()
	for b.Loop() {
		at.Reset()
		at.Input = input
		at.Limits.OutputBytes = 1 << 20
		if got := box.Run(b.Context(), &at); got.Failure != nil {
			b.Fatal(got.Failure.Message)
		}
	}
}
