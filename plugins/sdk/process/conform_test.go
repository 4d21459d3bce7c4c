// Package process_test tests the SDK for workers that are processes, in Go: as a host sees it.
package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m) }

// built builds a worker of a folder.
func built(t testing.TB, folder string) sdktest.Executable {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(folder))
	toolchain.Build(t, ".", os.Environ(), "go", "build", "-o", out, "./"+folder)
	return sdktest.Executable{Path: out}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.RunProcess(t, built(t, "conform"))
}

func BenchmarkNoop(b *testing.B) { sdktest.BenchProcess(b, built(b, "conform")) }
