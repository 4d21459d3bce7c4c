package toolchain

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// TestKey: what is in the sources and the settings make another module, where they lie doesn't.
func TestKey(t *testing.T) {
	t.Parallel()
	keyOfFile := func(name, content string, settings ...string) string {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := keyOf([]string{dir}, settings)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := keyOfFile("src/lib.rs", "fn main() {}", "release")
	for _, c := range []struct {
		name, key string
		same      bool
	}{
		{"elsewhere", keyOfFile("src/lib.rs", "fn main() {}", "release"), true},
		{"another source", keyOfFile("src/lib.rs", "fn main() { }", "release"), false},
		{"another name", keyOfFile("src/main.rs", "fn main() {}", "release"), false},
		{"another setting", keyOfFile("src/lib.rs", "fn main() {}", "debug"), false},
	} {
		if (c.key == first) != c.same {
			t.Errorf("%s: %s after %s", c.name, c.key, first)
		}
	}
	if _, err := keyOf([]string{filepath.Join(t.TempDir(), "nowhere")}, nil); err == nil {
		t.Error("sources that are not there have a key")
	}
}

// TestModule: a module is built once.
func TestModule(t *testing.T) {
	t.Parallel()
	builds, sources := 0, []string{t.TempDir()}
	if err := os.WriteFile(filepath.Join(sources[0], "source"), []byte(rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := Module(t, sources, nil, func(out string) {
			builds++
			if err := os.WriteFile(out, []byte("module"), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if string(got) != "module" {
			t.Errorf("%q", got)
		}
	}
	if builds != 1 {
		t.Errorf("it was built %d times", builds)
	}
}
