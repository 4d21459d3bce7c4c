// Package buildcache keeps what tests build, so that it is built once for all packages and runs of tests.
package buildcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/internal/prune"
)

// shared is a folder of all test binaries of this user.
var shared = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()), "built")

// File returns the file with this key, the SHA-256 digest in hex of all that it depends on. If there is none, build makes
// it. While one process builds, others that ask for the same file wait.
func File(key string, build func(out string) error) ([]byte, error) { return file(shared, key, build) }

// file is File in a folder.
func file(dir, key string, build func(out string) error) ([]byte, error) {
	entry := filepath.Join(dir, key)
	path := filepath.Join(entry, "file")
	if content, err := os.ReadFile(path); err == nil {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // it is in use: see prune.Folders
		return content, nil
	}
	if err := os.MkdirAll(entry, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.Open(entry)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", entry, err)
	}
	content, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	unfinished := filepath.Join(entry, "unfinished")
	if err := errors.Join(build(unfinished), prune.Folders(dir)); err != nil {
		return nil, err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
