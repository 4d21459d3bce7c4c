package watch

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// toolFolders are folders that compilers and package managers fill.
var toolFolders = []string{"target", "node_modules", "__pycache__"}

// ignored reports whether an entry of a tree is nobody's source: hidden, an
// editor's backup or lock, or a tool's.
func ignored(entry fs.DirEntry) bool {
	name := entry.Name()
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") ||
		strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp") ||
		entry.IsDir() && slices.Contains(toolFolders, name)
}

// signature tells a file's contents from others. One that can't be read has none.
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
