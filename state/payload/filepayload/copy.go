package filepayload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/jobhost/jobhost/state/payload"
)

// Hold keeps the objects of a folder from being deleted, until release is
// called or the process ends, for who copies what refers to them. A folder
// that is not there has nothing to hold.
func Hold(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, copyingFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hold payload folder: %w", err)
	}
	// It waits for deletions that are under way, and for another copy.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("hold payload folder: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// OpenObject opens an object of a folder of which nothing is changed. The folder may be someone else's: a link in it leads to
// nothing outside. Errors: [payload.ErrNotFound].
func OpenObject(dir, key string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, payload.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	return openIn(root, key)
}

// Copy copies the objects of a folder into another one, by hard links where
// the file system can, since objects never change. Those that are there already
// are left as they are. A folder that is not there has no objects.
func Copy(ctx context.Context, from, to string) (objects int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy payloads: %w", err)
		}
	}()
	source := filepath.Join(from, objectsDir)
	err = filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // all of it, or what was removed in between
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		objects++
		return copyObject(name, target)
	})
	if err != nil || objects == 0 {
		return objects, err
	}
	return objects, syncTree(filepath.Join(to, objectsDir))
}

// copyObject links or copies a file, which gets its name when it is whole.
func copyObject(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed in between
	}
	if err != nil {
		return err
	}
	defer in.Close()
	part := to + ".part" // no key, so that no store sees it
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close(), os.Remove(part))
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, to)
}

// syncTree makes the names of objects and of their folders durable.
func syncTree(dir string) error {
	sync := func(name string) error {
		d, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
	fans, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, fan := range fans {
		if fan.IsDir() {
			if err := sync(filepath.Join(dir, fan.Name())); err != nil {
				return err
			}
		}
	}
	return errors.Join(sync(dir), sync(filepath.Dir(dir)))
}
