package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExampleCases runs the cases of the examples as their authors do.
func TestExampleCases(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dirs, err := filepath.Glob("../../plugins/examples/*/cases")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("only the cases %q: %v", dirs, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), name+".wasm")); errors.Is(err, fs.ErrNotExist) {
				t.Skip("it is not built; make build does that")
			}
			stdout, stderr, code := execute(t, "", "worker", "test", dir)
			if code != 0 || !strings.Contains(stdout, "ok ") || !strings.Contains(stderr, " 0 failed") {
				t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
			}
		})
	}
}
