package filepayload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/jobhost/jobhost/state/payload"
)

// Delete implements [payload.Store]. While the folder is being copied, it is
// [payload.ErrBusy].
func (s *Store) Delete(ctx context.Context, keys []string) error {
	copying, err := s.root.OpenFile(copyingFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = copying.Close() }() // and with it the lock goes
	switch err := syscall.Flock(int(copying.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return payload.ErrBusy
	case err != nil:
		return fmt.Errorf("lock %s: %w", copying.Name(), err)
	}
	fans := map[string]bool{}
	for _, key := range keys {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := nameOf(key)
		if err != nil {
			continue // there is no such object
		}
		if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fans[path.Dir(name)] = true
	}
	// That a file is gone need not be durable: it would be deleted again.
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fan := range slices.Sorted(maps.Keys(fans)) {
		if s.root.Remove(fan) == nil { // else it is not empty
			delete(s.fans, fan)
		}
	}
	return nil
}

// List implements [payload.Store].
func (s *Store) List(ctx context.Context, after string, limit int) ([]string, error) {
	fans, err := fs.ReadDir(s.root.FS(), objectsDir) // sorted by name, as all below
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, fan := range fans {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(keys) >= limit {
			break
		}
		if !fan.IsDir() || fan.Name() < after[:min(fanDigits, len(after))] {
			continue
		}
		files, err := fs.ReadDir(s.root.FS(), path.Join(objectsDir, fan.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed in between
		}
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			name, err := nameOf(f.Name())
			if err == nil && path.Base(path.Dir(name)) == fan.Name() && f.Name() > after && len(keys) < limit {
				keys = append(keys, f.Name())
			}
		}
	}
	return keys, nil
}
