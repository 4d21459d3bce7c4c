// Package c_test tests the SDK for C: as a guest, and its parts that need no host
// on this machine.
package c_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: sdktest.Prebuilt(t)})
}

// build builds a worker with a script of the SDK, and returns it.
func build(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	toolchain.Need(t, "clang")
	toolchain.Need(t, "wasm-ld")
	return toolchain.Module(t, []string{"."}, append([]string{script}, args...), func(out string) {
		if i := slices.Index(args, "OUT"); i >= 0 {
			args[i] = out
		}
		toolchain.Build(t, ".", os.Environ(), script, args...)
	})
}

func TestPrebuilt(t *testing.T) {
	t.Parallel()
	built := build(t, "conform/build.sh", "OUT")
	version, err := exec.CommandContext(t.Context(), "clang", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(version), "\n")
	sdktest.Same(t, built, line)
}

// needLibc skips the test without wasi-libc.
func needLibc(t *testing.T) {
	t.Helper()
	probe := exec.CommandContext(t.Context(), "clang", "--target=wasm32-wasi", "-E", "-x", "c", "-")
	probe.Stdin = strings.NewReader("#include <stdio.h>\n")
	if err := probe.Run(); err != nil {
		t.Skip("there is no clang with a libc for wasm32-wasi here (Debian: clang, wasi-libc)")
	}
}

func TestConformWithLibc(t *testing.T) {
	t.Parallel()
	needLibc(t)
	sdktest.Run(t, sdktest.Subject{Module: build(t, "./build.sh", "--libc", "OUT", "conform/conform.c")})
}

func TestHello(t *testing.T) {
	t.Parallel()
	module := build(t, "hello/build.sh", "OUT")
	if got := sdktest.Call(t, module, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := sdktest.Fail(t, module, "", "\n"); f.Retryable || f.Code != jobhost.FailWorker {
		t.Errorf("%+v", f)
	}
	if len(module) > 8<<10 {
		t.Errorf("hello has %d bytes", len(module))
	}
}

// TestNative runs the tests that are in C themselves, where a bad pointer shows.
func TestNative(t *testing.T) {
	t.Parallel()
	cc := toolchain.Need(t, "cc")
	out := filepath.Join(t.TempDir(), "native")
	toolchain.Build(t, ".", os.Environ(), cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-g",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Ijobhost", "-o", out,
		"testdata/native.c", "jobhost/text.c", "jobhost/json.c", "jobhost/calls.c", "jobhost/ops.c", "jobhost/http.c")
	toolchain.Build(t, ".", append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0"), out)
}

// TestLife shows what the README says of memory.
func TestLife(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { t.Parallel(); testLife(t, build(t, "./build.sh", "OUT", "testdata/life.c")) })
	t.Run("with a libc", func(t *testing.T) {
		t.Parallel()
		needLibc(t)
		testLife(t, build(t, "./build.sh", "--libc", "OUT", "testdata/life.c"))
	})
}

func testLife(t *testing.T, module []byte) {
	worker := sdktest.Open(t, module)
	seeds := map[string]bool{}
	for _, size := range []int{10, 100_000, 0, 10} {
		input := strings.Repeat("i", size)
		fields := strings.Split(worker.Call(t, "", input), " ")
		if len(fields) != 3 || fields[0] != "abc" || fields[2] != input || seeds[fields[1]] {
			t.Errorf("%.100q after %v", fields, seeds)
		}
		seeds[fields[1]] = true
	}
	messages := make([]string, 80) // which don't fit into memory together
	for i := range messages {
		messages[i] = strings.Repeat("m", 1<<20-i)
	}
	if got := worker.Fiber(t, "lengths", messages...); len(got) != 80 || got[79] != "1048497" {
		t.Errorf("%q", got)
	}
	if f := worker.Fail(t, "hoard", ""); f.Code != jobhost.FailMemory {
		t.Errorf("%+v", f)
	}
	if f := worker.Fail(t, "deep", ""); f.Code != jobhost.FailTrap && f.Code != jobhost.FailStack {
		t.Errorf("%+v", f)
	}
	if got := worker.Call(t, "", ""); !strings.HasPrefix(got, "abc ") {
		t.Errorf("after all that: %q", got)
	}
}
