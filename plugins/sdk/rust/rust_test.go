// Package rust_test tests the SDK for Rust: what its guests do arrives at a host, and
// they are what their sources make.
package rust_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: sdktest.Prebuilt(t)})
}

// The library of a compiler's second target has no clock and no streams, but the SDK works.
func TestConformanceWithoutWASI(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: build(t, "conform", "RUST_TARGET=wasm32-unknown-unknown")})
}

func TestConformIsWhatItsSourcesMake(t *testing.T) {
	t.Parallel()
	sdktest.Same(t, build(t, "conform"), compiler(t))
}

func TestHello(t *testing.T) {
	t.Parallel()
	module := build(t, "hello")
	if len(module) > 64<<10 {
		t.Errorf("hello.wasm has %d bytes", len(module))
	}
	if got := sdktest.Call(t, module, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := sdktest.Fail(t, module, "", " "); f.Retryable || !strings.HasPrefix(f.Message, "nobody to greet") {
		t.Errorf("%+v", f)
	}
	if f := sdktest.Fail(t, module, "", "\xff"); f.Retryable || !strings.Contains(f.Message, "utf-8") {
		t.Errorf("%+v", f)
	}
}

// The crates' own tests run natively, in the host that the SDK brings for tests.
func TestNatively(t *testing.T) {
	t.Parallel()
	rustc := os.Getenv("RUSTC")
	if rustc == "" {
		rustc = "rustc"
	}
	rustc = toolchain.Need(t, rustc)
	for name, args := range map[string][]string{
		"sdk":   {"src/lib.rs"},
		"hello": {"hello/src/lib.rs", "--extern=jobhost"},
	} {
		program := toolchain.Module(t, []string{"."}, []string{"tests of", name}, func(out string) {
			dir := t.TempDir()
			toolchain.Build(t, ".", os.Environ(), rustc, "--edition=2021", "--crate-type=rlib", "--crate-name=jobhost", "--out-dir", dir, "src/lib.rs")
			toolchain.Build(t, ".", os.Environ(), rustc, append(args, "-L"+dir, "--deny=warnings", "--edition=2021", "--test", "-o", out)...)
		})
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, program, 0o700); err != nil {
			t.Fatal(err)
		}
		toolchain.Build(t, ".", os.Environ(), path)
	}
}

// The manifests of the crates are right, if there is a cargo to read them.
func TestCargo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("cargo takes seconds")
	}
	cargo := toolchain.Need(t, "cargo")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	toolchain.Build(t, filepath.Join(dir, "hello"), os.Environ(), cargo, "check", "--quiet", "--offline", "--all-targets", "--target-dir", "target")
}

// compiler says what builds guests here, or skips the test.
func compiler(t *testing.T, env ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building a guest takes seconds")
	}
	cmd := exec.CommandContext(t.Context(), "./build.sh", "-V")
	cmd.Env = toolchain.Env(env...)
	out, err := cmd.Output()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case exited && exit.ExitCode() == 3:
		t.Skip(string(exit.Stderr))
	case err != nil:
		t.Fatalf("build.sh -V: %v", err)
	}
	return string(out)
}

// build builds a guest from a copy of the SDK, so that nothing of where it is gets into it.
func build(t *testing.T, guest string, env ...string) []byte {
	t.Helper()
	compiler(t, env...)
	return toolchain.Module(t, []string{"."}, append([]string{guest}, env...), func(out string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		toolchain.Build(t, dir, toolchain.Env(env...), "./build.sh", out, guest)
	})
}
