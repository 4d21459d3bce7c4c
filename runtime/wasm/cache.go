package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
)

// openCache opens the folder of compiled modules, private to this user.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return wazero.NewCompilationCacheWithDir(dir)
}

// mend does something with the cache; if that fails because of what is in the
// folder, it empties the folder and does it again.
func (e *Engine) mend(ctx context.Context, do func() error) error {
	err := do()
	// wazero has no sentinel for it.
	if err == nil || !strings.HasPrefix(err.Error(), "compilationcache:") {
		return err
	}
	e.logger.WarnContext(ctx, "the compile cache is damaged and is made again", "dir", e.cacheDir, "error", err)
	if err := emptyCache(e.cacheDir); err != nil {
		return fmt.Errorf("empty the compile cache: %w", err)
	}
	return do()
}

// isFault reports whether an error is one of the file system.
func isFault(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link
}

// emptyCache removes all compiled modules; they are made again when needed.
func emptyCache(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Another process may be emptying it too.
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// keyedLock lets one goroutine at a time do something with a key.
type keyedLock struct {
	mu   sync.Mutex // protects held
	held map[string]*keyHold
}

// keyHold is a key that somebody has or waits for.
type keyHold struct {
	sync.Mutex
	users int
}

// lock waits for the key and returns what gives it back.
func (l *keyedLock) lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyHold{}
	}
	hold := l.held[key]
	if hold == nil {
		hold = &keyHold{}
		l.held[key] = hold
	}
	hold.users++
	l.mu.Unlock()
	hold.Lock()
	return func() {
		hold.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if hold.users--; hold.users == 0 {
			delete(l.held, key)
		}
	}
}
