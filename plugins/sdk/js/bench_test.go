package js_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// cacheDir keeps what was compiled for later runs.
var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()))

// BenchmarkJob is an attempt in a sandbox that is put back after each, or reused as it is.
func BenchmarkJob(b *testing.B) {
	for _, worker := range []struct{ name, file, input string }{
		{"hello", "hello/hello.js", "Ada"},
		{"JSON", "testdata/order.js", `{"customer":7,"items":[{"price":2,"n":3},{"price":1.5,"n":2}]}`},
	} {
		module := build(b, worker.file)
		for _, isolation := range []runtime.Isolation{runtime.IsolateInstance, runtime.IsolateJob} {
			b.Run(worker.name+"/"+string(isolation), func(b *testing.B) { attempts(b, module, isolation, worker.input) })
		}
	}
}

func attempts(b *testing.B, module []byte, isolation runtime.Isolation, input string) {
	engine, err := wasm.New(wasm.Config{CacheDir: cacheDir})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = engine.Close(context.Background()) }()
	plugin, err := engine.Load(b.Context(), runtime.Source{Worker: "bench", Bytes: module, Isolation: isolation})
	if err != nil {
		b.Fatal(err)
	}
	sandbox := runtime.NewSandbox(plugin, nil)
	defer func() { _ = sandbox.Close(context.Background()) }()
	var at hostcall.Attempt
	b.ReportAllocs()
	for b.Loop() {
		at.Reset()
		at.Input = []byte(input)
		at.Limits.OutputBytes = 1 << 20
		at.Deadline = time.Now().Add(30 * time.Second)
		if outcome := sandbox.Run(b.Context(), &at); outcome.Failure != nil {
			b.Fatal(outcome.Failure.Message)
		}
	}
}
