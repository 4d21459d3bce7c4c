package js_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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

// builds keeps what was built, since it takes seconds.
var builds sync.Map // of the file to a function

// build makes a worker of a JavaScript file, once.
func build(t testing.TB, file string) []byte {
	t.Helper()
	toolchain.NeedModule(t, "quickjs-wasi")
	toolchain.NeedModule(t, "binaryen")
	node := toolchain.Need(t, "node")
	once, _ := builds.LoadOrStore(file, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "jobhost-js-test-") //nolint:usetesting // it is for more tests than this one
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		out := filepath.Join(dir, "worker.wasm")
		cmd := exec.CommandContext(context.Background(), node, "build.mjs", file, "-o", out)
		cmd.Env = toolchain.Env()
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", file, err, text)
		}
		return os.ReadFile(out)
	}))
	module, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return module
}
