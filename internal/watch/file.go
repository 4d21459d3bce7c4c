package watch

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// toolFolders are folders that compilers and package managers fill.
var toolFolders = []string{"target", "node_modules", "__pycache__", "zig-out", "zig-cache", "venv", "coverage"}

// noSources are the endings of names of what editors, compilers, tools and databases
// leave beside sources, and of documents that people put there.
var noSources = []string{
	"~", ".tmp", ".swp", ".swo", ".bak", ".orig", ".rej", ".part", "___jb_tmp___", "___jb_old___",
	".log", ".pid", ".out", ".md",
	".o", ".a", ".so", ".pyc", ".wasm", ".test", ".prof",
	".db", ".db-wal", ".db-shm", ".db-journal",
}

// vimProbe is a file that vim creates to check whether it may write to a folder.
const vimProbe = "4913"

// ignored reports whether an entry of a tree is, by its name, not a source.
func ignored(entry fs.DirEntry) bool {
	name := entry.Name()
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") {
		return true
	}
	if entry.IsDir() {
		return slices.Contains(toolFolders, name)
	}
	return name == vimProbe || slices.ContainsFunc(noSources, func(end string) bool { return strings.HasSuffix(name, end) })
}

// holdsCases reports whether a folder holds the cases of jobhost worker test.
func holdsCases(dir string) bool {
	cases, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(cases, func(entry fs.DirEntry) bool {
		_, err := os.Stat(filepath.Join(dir, entry.Name(), "case.toml"))
		return err == nil
	})
}

// signature identifies the contents of a file. One that can't be read has none.
type signature struct {
	size int64
	time time.Time // of its last change
	sum  [sha256.Size]byte
}

// same reports whether the file need not be read again.
func (s *signature) same(info fs.FileInfo) bool {
	return s.size == info.Size() && s.time.Equal(info.ModTime())
}

// sign reads a file.
func sign(path string, info fs.FileInfo) signature {
	s := signature{size: info.Size(), time: info.ModTime()}
	f, err := os.Open(path)
	if err != nil {
		return s
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return s
	}
	h.Sum(s.sum[:0])
	return s
}
