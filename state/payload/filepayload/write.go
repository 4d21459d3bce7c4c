package filepayload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/jobhost/jobhost/state/payload"
)

// enter makes a folder for what this process writes, and removes those of
// processes that are gone. Their locks went with them.
func (s *Store) enter() error {
	s.tmp = path.Join(tmpDir, rand.Text())
	if err := s.root.Mkdir(s.tmp, 0o700); err != nil {
		return err
	}
	own, err := s.root.OpenFile(path.Join(s.tmp, ownerFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.own = own
	if err := syscall.Flock(int(own.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", own.Name(), err)
	}
	others, err := fs.ReadDir(s.root.FS(), tmpDir)
	if err != nil {
		return err
	}
	for _, other := range others {
		if name := path.Join(tmpDir, other.Name()); name != s.tmp {
			if err := s.removeLeft(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeLeft removes what a process has left behind that is gone. One that has
// made its folder this moment and not locked it yet is left alone: it has no
// owner file.
func (s *Store) removeLeft(name string) error {
	owner, err := s.root.OpenFile(path.Join(name, ownerFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		_ = s.root.Remove(name) // only if it is empty
		return nil
	}
	if err != nil {
		return err
	}
	defer owner.Close()
	if syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // it is in use
	}
	return s.root.RemoveAll(name)
}

// object is a file in the making.
type object struct {
	store    *Store
	ctx      context.Context // of its making
	file     *os.File
	tmp, key string
	done     bool
}

// Create implements [payload.Store].
func (s *Store) Create(ctx context.Context, key string) (payload.Object, error) {
	if _, err := nameOf(key); err != nil {
		return nil, err
	}
	tmp := path.Join(s.tmp, key)
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &object{store: s, ctx: ctx, file: f, tmp: tmp, key: key}, nil
}

// Write implements [payload.Object].
func (o *object) Write(p []byte) (int, error) {
	if o.ctx.Err() != nil {
		return 0, context.Cause(o.ctx)
	}
	return o.file.Write(p)
}

// Commit implements [payload.Object].
func (o *object) Commit() error {
	err := o.file.Sync()
	if err = errors.Join(err, o.file.Close()); err != nil {
		return err
	}
	name, err := nameOf(o.key)
	if err != nil {
		return err
	}
	if err := o.store.place(o.tmp, name); err != nil {
		return err
	}
	if err := o.store.syncDir(path.Dir(name)); err != nil {
		return err
	}
	o.done = true
	return nil
}

// place gives a file its name, in a folder that is durable.
func (s *Store) place(tmp, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fan := path.Dir(name); !s.fans[fan] {
		if err := s.mkdir(fan); err != nil {
			return err
		}
		if err := s.syncDir(objectsDir); err != nil {
			return err
		}
		s.fans[fan] = true
	}
	err := s.root.Rename(tmp, name)
	if errors.Is(err, fs.ErrNotExist) { // the folder was tidied up in between
		delete(s.fans, path.Dir(name))
	}
	return err
}

// Abort implements [payload.Object].
func (o *object) Abort() {
	if o.done {
		return
	}
	o.done = true
	_ = o.file.Close()
	_ = o.store.root.Remove(o.tmp)
	if name, err := nameOf(o.key); err == nil {
		_ = o.store.root.Remove(name) // if it was Commit that failed, at its end
	}
}
