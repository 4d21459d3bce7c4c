// Package node_test tests the SDK for workers in JavaScript that are processes.
package node_test

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m) }

// conform returns the worker under test, or skips the test without the SDK's dependencies.
func conform(t testing.TB) sdktest.Executable {
	t.Helper()
	toolchain.Need(t, "node")
	for _, name := range []string{"@grpc/grpc-js", "protobufjs"} {
		toolchain.NeedModule(t, name)
	}
	return sdktest.Executable{Path: "conform/conform.js", Env: map[string]string{"NODE_PATH": toolchain.Modules()}}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.RunProcess(t, conform(t))
}

func BenchmarkNoop(b *testing.B) { sdktest.BenchProcess(b, conform(b)) }

// TestUnits runs the tests that are in JavaScript themselves.
func TestUnits(t *testing.T) {
	t.Parallel()
	conform(t)
	toolchain.Build(t, ".", toolchain.Env(), "node", "--test", "tests/parts.test.js")
}

func TestHello(t *testing.T) {
	t.Parallel()
	e := conform(t)
	e.Path = "hello/hello.js"
	w := sdktest.OpenProcess(t, e)
	if got := w.Call(t, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := w.Fail(t, "", "\n"); f.Retryable || f.Code != jobhost.FailWorker {
		t.Errorf("%+v", f)
	}
}
