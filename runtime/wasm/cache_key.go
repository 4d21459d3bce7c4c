package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	keyName  = "key"
	keyBytes = 32
)

// loadKey loads the key of the cache, and makes a new one if there is none that
// can be trusted.
func (c *cache) loadKey() (made bool, err error) {
	path := filepath.Join(c.dir, keyName)
	c.key, err = readKey(path)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		c.damaged(context.Background(), path, err)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	err = makeKey(path)
	made = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been faster
		return false, fmt.Errorf("make a key: %w", err)
	}
	c.key, err = readKey(path)
	return made, err
}

func readKey(path string) ([]byte, error) {
	return readSmall(path, keyBytes)
}

// readSmall reads a private file of a known size.
func readSmall(path string, size int) ([]byte, error) {
	file, err := openPrivate(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, int64(size)+1))
	if err != nil {
		return nil, err
	}
	if len(b) != size {
		return nil, fmt.Errorf("%s has another size than %d bytes", filepath.Base(path), size)
	}
	return b, nil
}

// openPrivate opens a file if it is a regular one, not a link, and this user's.
// It doesn't block on anything else that may be there.
func openPrivate(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", filepath.Base(path))
	}
	if err == nil {
		err = checkOwn(filepath.Base(path), info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// makeKey writes a new key, completely or not at all, unless there is one.
func makeKey(path string) error {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	temp, err := os.CreateTemp(filepath.Dir(path), keyName+".*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(key)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	err = os.Link(temp.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(temp.Name(), path) // a file system without hard links
	}
	return err
}
