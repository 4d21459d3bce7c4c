package prune

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cached is an entry of a test: how long ago it was used and how large it is.
type cached struct {
	days int
	size int64
	kept bool
}

func TestFolders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		entries []cached
	}{
		{"nothing", nil},
		{"used lately", []cached{{0, 10, true}, {29, 10, true}}},
		{"used long ago", []cached{{0, 10, true}, {31, 10, false}, {300, 10, false}}},
		{"the host was off for long", []cached{{300, 10, true}, {310, 10, true}, {340, 10, false}}},
		{"used in the future", []cached{{-400, 10, true}, {1, 10, true}, {31, 10, false}}},
		{"too large together", []cached{{1, 1 << 30, true}, {2, 1 << 30, true}, {3, 1, false}}},
		{"one is too large alone", []cached{{1, 1 << 30, true}, {2, 3 << 30, false}, {3, 1, true}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n, c := range tc.entries {
				c.make(t, entryPath(dir, n))
			}
			if err := Folders(dir); err != nil {
				t.Fatal(err)
			}
			for n, c := range tc.entries {
				if _, err := os.Lstat(entryPath(dir, n)); (err == nil) != c.kept {
					t.Errorf("entry %d, used %d days ago: %v", n, c.days, err)
				}
			}
		})
	}
}

func entryPath(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%064x", n)) }

// make makes an entry with a file in a folder within it.
func (c cached) make(t *testing.T, path string) {
	t.Helper()
	inner := filepath.Join(path, "inner")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(inner, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, c.size); err != nil {
		t.Fatal(err)
	}
	used := time.Now().AddDate(0, 0, -c.days)
	for _, p := range []string{file, inner, path} {
		if err := os.Chtimes(p, used, used); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFoldersTouchesNothingElse: files, links and folders with other names stay, however old, and links are not followed.
func TestFoldersTouchesNothingElse(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	old := time.Now().AddDate(-1, 0, 0)
	digest := strings.Repeat("ab", 32)
	stay := []string{"key", "processes", strings.ToUpper(digest), digest[:62], digest + "00", strings.Repeat("zz", 32)}
	for _, name := range stay {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept")
	cached{days: 400, size: 1}.make(t, kept)
	link := strings.Repeat("cd", 32)
	if err := os.Symlink(kept, filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	cached{days: 0}.make(t, entryPath(dir, 1))
	cached{days: 400}.make(t, entryPath(dir, 2))
	inner := filepath.Join(entryPath(dir, 2), "inner")
	if err := os.Symlink(kept, filepath.Join(inner, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(inner, old, old); err != nil {
		t.Fatal(err)
	}
	if err := Folders(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(stay, link, filepath.Base(entryPath(dir, 1))) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(entryPath(dir, 2)); err == nil {
		t.Error("an old entry with a link in it was kept")
	}
	if _, err := os.Lstat(filepath.Join(kept, "inner", "file")); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}

func TestFoldersOfNothing(t *testing.T) {
	t.Parallel()
	if err := Folders(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that isn't there was pruned")
	}
}
