package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/buildcache"
)

// Module returns the guest that a function builds with compilers of other languages. It runs where it hasn't before with
// the same sources, which are files and folders, the same settings, such as arguments, and the same compilers.
func Module(t testing.TB, sources, settings []string, build func(out string)) []byte {
	t.Helper()
	key, err := keyOf(sources, settings)
	if err != nil {
		t.Fatal(err)
	}
	module, err := buildcache.File(key, func(out string) error {
		build(out)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// What a build depends on besides its sources.
var (
	programs  = []string{"asc", "clang", "node", "rustc", "/usr/bin/rustc", "wasm-ld", "wasm-ld-14", "zig"}
	libraries = []string{"/usr/lib/wasm32-wasi", "/usr/lib/rustlib/wasm32-wasi"}
	variables = []string{"ASC", "CFLAGS", "OPTIMIZE", "RUSTC", "RUST_TARGET"}
)

// keyOf returns the digest of all that a module depends on.
func keyOf(sources, settings []string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q\n", settings)
	for _, name := range variables {
		_, _ = fmt.Fprintf(h, "%s=%q\n", name, os.Getenv(name))
	}
	// Those of npm change with the list of what is installed.
	for _, path := range append(libraries, filepath.Join(Modules(), ".package-lock.json")) {
		describe(h, path)
	}
	for _, name := range programs {
		if path, err := Path(name); err == nil {
			describe(h, path)
		}
	}
	if rustc := os.Getenv("RUSTC"); rustc != "" {
		if path, err := exec.LookPath(rustc); err == nil {
			describe(h, path)
		}
	}
	for _, source := range sources {
		if err := hash(h, source); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe tells one version of what is installed from another.
func describe(w io.Writer, path string) {
	if info, err := os.Stat(path); err == nil {
		_, _ = fmt.Fprintf(w, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
}

// hash writes what is in a file or folder, but tests in Go.
func hash(w io.Writer, source string) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, path)
		_, _ = fmt.Fprintf(w, "%s %d\n%s", name, len(content), content)
		return err
	})
}
