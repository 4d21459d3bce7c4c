package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tetratelabs/wazero"
)

// folder is where the code of one plugin is kept. It is locked while it is in
// use, by several readers or one writer, here or in other processes, such as a
// worker's sandbox processes, or another command. Nothing waits for the lock,
// since compiling takes no longer than waiting for another process to do so.
//
//	enter ─► check ─ sealed ─► wazero reads ─► leave
//	           └─ damaged, unfinished or empty ─► empty ─► wazero compiles and writes ─► seal ─► leave
type folder struct {
	cache  *cache
	digest string
	path   string
	lock   *os.File // the folder itself, open
	files  int      // covered by the seal; 0 = it has none
}

var (
	// errBusy means that another process has locked the folder.
	errBusy = errors.New("another process uses the folder")
	// errForeign means that it is not a folder that belongs to this user alone.
	errForeign = errors.New("it can't be trusted")
	// errEmpty means that nothing has been compiled yet.
	errEmpty = errors.New("the folder is empty")
)

// open makes the folder contain either what was sealed, or nothing.
func (f *folder) open(ctx context.Context) error {
	if err := f.take(ctx); err != nil {
		return err
	}
	reason := f.check()
	if reason == nil {
		f.cache.touch(f.digest)
		return nil
	}
	if err := f.flock(syscall.LOCK_EX); err != nil {
		return err
	}
	if !errors.Is(reason, errEmpty) {
		f.cache.damaged(ctx, f.path, reason)
	}
	return f.empty()
}

// take creates the folder if necessary, and locks it.
func (f *folder) take(ctx context.Context) error {
	for range 3 {
		if err := os.Mkdir(f.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		err := f.tryTake()
		switch {
		case errors.Is(err, errForeign):
			f.cache.damaged(ctx, f.path, err)
			if err := os.RemoveAll(f.path); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist): // unless another process has just removed it
			return err
		}
	}
	return errBusy
}

// tryTake locks the folder if it is one, and this user's alone.
func (f *folder) tryTake() (err error) {
	f.leave()
	f.lock, err = os.OpenFile(f.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", errForeign, err)
	case err != nil:
		return err
	}
	mine, err := f.lock.Stat()
	if err != nil {
		return err
	}
	if err := checkOwn("the folder", mine); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if err := f.flock(syscall.LOCK_SH); err != nil {
		return err
	}
	there, err := os.Lstat(f.path)
	if err == nil && !os.SameFile(mine, there) {
		err = fs.ErrNotExist
	}
	return err
}

// flock locks the folder, or changes the kind of lock.
func (f *folder) flock(how int) error {
	err := syscall.Flock(int(f.lock.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errBusy
	}
	return err
}

// leave unlocks the folder. It may be called twice.
func (f *folder) leave() {
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

// compilation returns wazero's cache for the content of the folder.
func (f *folder) compilation() (wazero.CompilationCache, error) {
	return wazero.NewCompilationCacheWithDir(f.path)
}

// empty removes the content of the folder.
func (f *folder) empty() error {
	f.files = 0
	entries, err := os.ReadDir(f.path)
	errs := []error{err}
	for _, d := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(f.path, d.Name())))
	}
	return errors.Join(errs...)
}

// finish seals what was compiled, if anything was. Code for a different
// processor is added to what is there.
func (f *folder) finish(ctx context.Context) {
	err := func() error {
		files, err := f.list()
		if err != nil || len(files) == f.files {
			return err
		}
		if err := f.flock(syscall.LOCK_EX); err != nil {
			return err
		}
		return f.seal()
	}()
	if err != nil && !errors.Is(err, errBusy) {
		f.distrust(ctx, err)
	}
}

// distrust empties a folder that could not be used, although it was sealed or
// empty.
func (f *folder) distrust(ctx context.Context, reason error) {
	f.cache.unusable(ctx, f.path, reason)
	if f.flock(syscall.LOCK_EX) == nil {
		_ = f.empty() // whatever is left has no seal
	}
}
