package js_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// TestConform runs the suite of all SDKs. Nothing of QuickJS is checked in, so that
// without its npm package there is no guest to run.
func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: build(t, "conform/conform.js")})
}

func TestHello(t *testing.T) {
	t.Parallel()
	if got := sdktest.Call(t, build(t, "hello/hello.js"), "", "Ada"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
}

// build makes a worker of a JavaScript file.
func build(t testing.TB, file string) []byte {
	t.Helper()
	toolchain.NeedModule(t, "quickjs-wasi")
	toolchain.NeedModule(t, "binaryen")
	out := filepath.Join(t.TempDir(), "worker.wasm")
	toolchain.Build(t, ".", toolchain.Env(), toolchain.Need(t, "node"), "build.mjs", file, "-o", out)
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
