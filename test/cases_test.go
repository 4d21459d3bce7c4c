package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/goguest"
)

// TestExampleCases runs the cases of the examples as their authors do: with the
// program, which compiles guests faster than a test under the race detector.
func TestExampleCases(t *testing.T) {
	t.Parallel()
	jobhost, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// Later runs use it, too, so that each guest is compiled once.
	cache := filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()), "cases")
	dirs, err := filepath.Glob("../plugins/examples/*/cases")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("only the cases %q: %v", dirs, err)
	}
	modules, err := goguest.Examples()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../manifest.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			// A copy beside a copy of the manifest, since a test must not write to the sources.
			root := t.TempDir()
			example := filepath.Join(root, "plugins", "examples", name)
			if err := errors.Join(os.CopyFS(example, os.DirFS(filepath.Dir(dir))), os.WriteFile(filepath.Join(root, "manifest.toml"), manifest, 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(example, name+".wasm"), modules[name], 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), jobhost, "worker", "test", filepath.Join(example, "cases"))
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "JOBHOST_MANIFEST=")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), " 0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
