package js_test

import (
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
	node := toolchain.Need(t, "node")
	sources, name := []string{"."}, file
	if filepath.IsAbs(file) { // elsewhere in each run
		sources, name = append(sources, filepath.Dir(file)), filepath.Base(file)
	}
	return toolchain.Module(t, sources, []string{name}, func(out string) {
		toolchain.Build(t, ".", toolchain.Env(), node, "build.mjs", file, "-o", out)
	})
}
