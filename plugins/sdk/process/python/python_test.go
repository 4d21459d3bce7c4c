// Package python_test tests the SDK for workers in Python.
package python_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m) }

var conform = sdktest.Executable{Path: "conform/conform.py"}

// needPython skips the test without the SDK's dependencies.
func needPython(t testing.TB) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import grpc, google.protobuf, cryptography").CombinedOutput(); err != nil {
		t.Skipf("/usr/bin/python3 lacks modules (Debian: python3-grpcio, python3-protobuf, python3-cryptography): %v %s", err, out)
	}
}

func TestConform(t *testing.T) {
	t.Parallel()
	needPython(t)
	sdktest.RunProcess(t, conform)
}

func BenchmarkNoop(b *testing.B) {
	needPython(b)
	sdktest.BenchProcess(b, conform)
}

// TestProtocol checks that the checked-in code is what the protocol description compiles to.
func TestProtocol(t *testing.T) {
	t.Parallel()
	protoc := toolchain.Need(t, "protoc")
	version, err := exec.CommandContext(t.Context(), protoc, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Other versions generate different code. Code that is newer than the library refuses to work.
	if want := "libprotoc 3.21.12\n"; string(version) != want {
		t.Skipf("worker_pb2.py was compiled by %q; here is %q", want, version)
	}
	out := t.TempDir()
	toolchain.Build(t, ".", os.Environ(), protoc, "-I", "jobhost_worker=../protocol", "--python_out="+out, "jobhost_worker/worker.proto")
	const name = "jobhost_worker/worker_pb2.py"
	compiled, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, compiled) {
		t.Errorf("%s is not what protocol/worker.proto is compiled to: make protocol (%v)", name, err)
	}
}

// TestUnits runs the tests that are in Python themselves.
func TestUnits(t *testing.T) {
	t.Parallel()
	needPython(t)
	toolchain.Build(t, ".", os.Environ(), "/usr/bin/python3", "-B", "-m", "unittest", "discover", "-s", "tests")
}

func TestHello(t *testing.T) {
	t.Parallel()
	needPython(t)
	w := sdktest.OpenProcess(t, sdktest.Executable{Path: "hello/hello.py"})
	if got := w.Call(t, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := w.Fail(t, "", "\n"); f.Retryable || f.Code != jobhost.FailWorker {
		t.Errorf("%+v", f)
	}
}
