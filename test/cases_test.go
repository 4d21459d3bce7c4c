package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExampleCases runs the cases of the examples as their authors do: by the
// program, which compiles guests faster than the race detector lets a test.
func TestExampleCases(t *testing.T) {
	t.Parallel()
	jobhost, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// Later runs have it, too, so that each guest is compiled once.
	cache := filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()), "cases")
	dirs, err := filepath.Glob("../plugins/examples/*/cases")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("only the cases %q: %v", dirs, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), name+".wasm")); errors.Is(err, fs.ErrNotExist) {
				t.Skip("it is not built; make build does that")
			}
			cmd := exec.CommandContext(t.Context(), jobhost, "worker", "test", dir)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "JOBHOST_MANIFEST=")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), " 0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
