// Package filepayload keeps payloads as files in a folder. It implements
// [payload.Store].
//
//	objects/TIME/KEY   an object; keys of about 17 minutes are in one folder
//	tmp/PROCESS/KEY    an object in the making
//	marks/NAME         a mark: see [payload.Marker]
//	copying            locked while the folder is being copied: nothing is deleted then
//
// An object is written and synced under tmp, and gets its name when it is
// whole: then its folder is synced. It is never changed after that, so copies
// of the folder may share files with it by hard links.
package filepayload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/jobhost/jobhost/state/payload"
)

// Names in the folder.
const (
	objectsDir  = "objects"
	tmpDir      = "tmp"
	copyingFile = "copying"
	ownerFile   = "owner"
)

// fanDigits is how many digits of a key name its folder: 2^20 ms.
const fanDigits = 7

// Store is a [payload.Store] in a folder.
type Store struct {
	root *os.Root
	tmp  string   // of this process
	own  *os.File // locked as long as tmp is in use

	mu   sync.Mutex      // protects fans, and is held while folders of objects come and go
	fans map[string]bool // folders that are durable
}

var (
	_ payload.Store    = (*Store)(nil)
	_ payload.Spacious = (*Store)(nil)
)

// Open opens the folder, which is made if it is not there, readable by its
// owner only. What processes that are gone had begun to write is removed.
func Open(dir string) (_ *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open payload folder: %w", err)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{root: root, fans: map[string]bool{}}
	err = errors.Join(s.mkdir(objectsDir), s.mkdir(tmpDir))
	if err == nil {
		err = s.touch(copyingFile)
	}
	if err == nil {
		err = s.syncDir(".")
	}
	if err == nil {
		err = s.enter()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) mkdir(name string) error {
	if err := s.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (s *Store) touch(name string) error {
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncDir makes the names in a folder durable.
func (s *Store) syncDir(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open implements [payload.Store].
func (s *Store) Open(_ context.Context, key string) (io.ReadCloser, error) {
	return openIn(s.root, key)
}

// openIn opens an object in a folder, and nothing outside of it.
func openIn(root *os.Root, key string) (io.ReadCloser, error) {
	name, err := nameOf(key)
	if err != nil {
		return nil, err
	}
	// Without O_NONBLOCK the open of a named pipe would wait for a writer.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, payload.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("object %s is no file but %v: %w", key, info.Mode().Type(), payload.ErrCorrupt)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// nameOf returns where an object is in the folder.
func nameOf(key string) (string, error) {
	if _, ok := payload.KeyTime(key); !ok {
		return "", fmt.Errorf("%q is no key: %w", key, payload.ErrNotFound)
	}
	return path.Join(objectsDir, key[:fanDigits], key), nil
}

// Free implements [payload.Spacious]: what a user without privileges can still write.
func (s *Store) Free() (int64, error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(dir.Fd()), &st); err != nil {
		return 0, fmt.Errorf("look at free space: %w", err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ by system
}

// Close implements [payload.Store].
func (s *Store) Close() error {
	if s.own != nil {
		_ = s.root.RemoveAll(s.tmp) // nothing is being written any more
		_ = s.own.Close()
		s.own = nil
	}
	return s.root.Close()
}
