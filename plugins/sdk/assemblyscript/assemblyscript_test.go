// Package assemblyscript_test tests the SDK for AssemblyScript: what its guests do arrives
// at a host, and they are what their sources make.
package assemblyscript_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: sdktest.Prebuilt(t)})
}

func TestConformIsWhatItsSourcesMake(t *testing.T) {
	t.Parallel()
	sdktest.Same(t, build(t, "conform"), compiler(t))
}

// A worker that depends on the package, as npm installs it, is built by its own asconfig.json.
func TestHello(t *testing.T) {
	t.Parallel()
	compiler(t)
	module := toolchain.Module(t, []string{"."}, []string{"as npm installs it"}, func(out string) {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "node_modules", "jobhost"), os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"worker.ts":     string(guesttest.Read(t, "hello/worker.ts")),
			"asconfig.json": `{"extends": "jobhost/asconfig.json", "entries": ["worker.ts"], "targets": {"release": {"outFile": "worker.wasm"}}}`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		toolchain.Build(t, dir, toolchain.Env(), toolchain.Need(t, "asc"))
		if err := os.Rename(filepath.Join(dir, "worker.wasm"), out); err != nil {
			t.Fatal(err)
		}
	})
	if len(module) > 16<<10 {
		t.Errorf("hello has %d bytes", len(module))
	}
	if got := sdktest.Call(t, module, "", "Ada\n"); got != "hello, Ada" {
		t.Errorf("%q", got)
	}
	if f := sdktest.Fail(t, module, "", " "); f.Retryable || !strings.HasPrefix(f.Message, "nobody to greet") {
		t.Errorf("%+v", f)
	}
}

// compiler says what builds guests here, or skips the test.
func compiler(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building a guest takes seconds")
	}
	cmd := exec.CommandContext(t.Context(), "./build.sh", "-V")
	cmd.Env = toolchain.Env()
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
func build(t *testing.T, guest string) []byte {
	t.Helper()
	compiler(t)
	return toolchain.Module(t, []string{"."}, []string{guest}, func(out string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		toolchain.Build(t, dir, toolchain.Env(), "./build.sh", out, guest)
	})
}
