package examples_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m) }

// rebuilt returns an example as its script builds it with an SDK, or skips the test without the programs that it needs.
func rebuilt(t *testing.T, example, sdk string, programs ...string) []byte {
	t.Helper()
	for _, program := range programs {
		toolchain.Need(t, program)
	}
	return builtOrSkipped(t, example, sdk)
}

// builtOrSkipped is rebuilt for an SDK whose script knows itself what it needs, and says by exit code 3 that it isn't there.
func builtOrSkipped(t *testing.T, example, sdk string) []byte {
	t.Helper()
	return toolchain.Module(t, []string{example, sdk}, []string{example}, func(out string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(example, "build.sh"), out)
		cmd.Env = toolchain.Env()
		text, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
			t.Skip(string(text))
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// TestPinned: manifests of examples that are processes have the digests of their programs.
func TestPinned(t *testing.T) {
	t.Parallel()
	for example, program := range map[string]string{"linkcheck": "linkcheck.js", "mailparse": "mailparse.py"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			sdktest.Pinned(t, filepath.Join(example, "manifest.toml"), filepath.Join(example, program))
		})
	}
}
