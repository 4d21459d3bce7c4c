// Package zig_test tests the SDK for Zig: as a guest, and by its own tests.
package zig_test

import (
	"os/exec"
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
func build(t *testing.T, script, optimize string, sources ...string) []byte {
	t.Helper()
	toolchain.Need(t, "zig")
	return toolchain.Module(t, []string{"."}, append([]string{script, optimize}, sources...), func(out string) {
		toolchain.Build(t, ".", toolchain.Env("OPTIMIZE="+optimize), script, append([]string{out}, sources...)...)
	})
}

func TestPrebuilt(t *testing.T) {
	t.Parallel()
	built := build(t, "conform/build.sh", "ReleaseSmall")
	version, err := exec.CommandContext(t.Context(), toolchain.Need(t, "zig"), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	sdktest.Same(t, built, string(version))
}

// TestConformDebug: another way to optimize makes no difference.
func TestConformDebug(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: build(t, "conform/build.sh", "Debug")})
}

func TestHello(t *testing.T) {
	t.Parallel()
	module := build(t, "hello/build.sh", "ReleaseSmall")
	worker := sdktest.Open(t, module)
	if got := worker.Call(t, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := worker.Fail(t, "", "\n"); f.Retryable || f.Message != "nobody to greet: the payload is empty" {
		t.Errorf("%+v", f)
	}
	if len(module) > 16<<10 {
		t.Errorf("hello has %d bytes", len(module))
	}
}

// TestLife shows what the README says of memory.
func TestLife(t *testing.T) {
	t.Parallel()
	for _, optimize := range []string{"ReleaseSmall", "ReleaseSafe"} {
		t.Run(optimize, func(t *testing.T) {
			t.Parallel()
			worker := sdktest.Open(t, build(t, "./build.sh", optimize, "testdata/life.zig"))
			testLife(t, worker)
			if optimize == "ReleaseSafe" {
				f := worker.Fail(t, "outside", "12345")
				if f.Code != "panic" || f.Severity != jobhost.SeverityCritical || f.Message != "start index 5 is larger than end index 2" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func testLife(t *testing.T, worker *sdktest.Worker) {
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
	if f := worker.Fail(t, "hoard", ""); f.Code != jobhost.FailMemory || !f.Retryable {
		t.Errorf("%+v", f)
	}
	if f := worker.Fail(t, "deep", ""); f.Code != jobhost.FailTrap && f.Code != jobhost.FailStack && f.Code != "panic" {
		t.Errorf("%+v", f)
	}
	if got := worker.Call(t, "", ""); !strings.HasPrefix(got, "abc ") {
		t.Errorf("after all that: %q", got)
	}
}

// TestNative runs the tests that are in Zig themselves, of the SDK and of a worker.
func TestNative(t *testing.T) {
	t.Parallel()
	zig := toolchain.Need(t, "zig")
	toolchain.Build(t, ".", toolchain.Env(), zig, "test", "src/jobhost.zig")
	toolchain.Build(t, ".", toolchain.Env(), zig, "test", "--dep", "jobhost", "-Mroot=hello/hello.zig", "-Mjobhost=src/jobhost.zig")
}
