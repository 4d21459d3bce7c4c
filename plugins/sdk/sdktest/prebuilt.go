package sdktest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Prebuilt returns the guest that is checked in under testdata, for machines
// without the SDK's compiler.
func Prebuilt(t *testing.T) []byte { return read(t, "conform.wasm") }

// Same sees that the guest under testdata is what its sources make. Compilers of
// different versions make different modules: where this one, as it calls itself,
// is not that of testdata/TOOLCHAIN, the test is skipped.
func Same(t *testing.T, built []byte, compiler string) {
	t.Helper()
	want := strings.TrimSpace(string(read(t, "TOOLCHAIN")))
	if got := strings.TrimSpace(compiler); got != want {
		t.Skipf("testdata/conform.wasm was built by %q; here is %q", want, got)
	}
	if prebuilt := Prebuilt(t); !bytes.Equal(built, prebuilt) {
		t.Errorf("testdata/conform.wasm (%d bytes) is not what its sources make (%d bytes): build it again", len(prebuilt), len(built))
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
