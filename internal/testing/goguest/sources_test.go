package goguest

import (
	"os"
	"path/filepath"
	"testing"
)

// write writes the sources of a guest with the package lib beside it.
func write(t *testing.T, dir, lib string) (guest string) {
	t.Helper()
	guest = filepath.Join(dir, "guest")
	for name, text := range map[string]string{
		"go.mod":         "module guests\n\ngo 1.26\n",
		"lib/lib.go":     lib,
		"guest/guest.go": "package main\n\nimport _ \"guests/lib\"\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return guest
}

// TestKey: what a guest imports makes it another one, where it lies doesn't.
func TestKey(t *testing.T) {
	t.Parallel()
	keyWith := func(lib string, mode Mode) string {
		sources, err := digests(write(t, t.TempDir(), lib))
		if err != nil {
			t.Fatal(err)
		}
		return key(mode, sources[0])
	}
	first := keyWith("package lib\n", Command)
	for _, c := range []struct {
		name, lib string
		mode      Mode
		same      bool
	}{
		{"another folder", "package lib\n", Command, true},
		{"another import", "package lib // changed\n", Command, false},
		{"another mode", "package lib\n", Worker, false},
	} {
		if k := keyWith(c.lib, c.mode); (k == first) != c.same {
			t.Errorf("%s: %s after %s", c.name, k, first)
		}
	}
}
