package sqlitedb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
)

// lockFile is held for as long as the database is open. The kernel drops the
// lock with the process, however it ends, so a stale file is simply taken.
type lockFile struct {
	file    *os.File
	witness *os.File // locked as well, in case the other one is removed; nil = there was none
}

// lockDir locks the directory for this process, or returns which process has it.
func lockDir(dir string) (*lockFile, error) {
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) // it is written to, wherever a link would lead
	if err != nil {
		return nil, explainPath(dir, err)
	}
	l := &lockFile{file: f}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = l.lockWitness(dir)
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errHeld(dir, f)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	default:
		err = writePid(f)
	}
	if err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// lockWitness locks the witness of a directory's database, if there is one: a lock file that is removed
// while a host runs, as one that looks stale, keeps no second host out.
func (l *lockFile) lockWitness(dir string) error {
	if l.witness != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, FileName+witnessSuffix), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil //nolint:nilerr // there is none, or what opens it next says why
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.Join(err, f.Close())
	}
	l.witness = f
	return nil
}

// writePid records which process has the lock. The file keeps its room until then; on a
// full disk a new one stays empty, and holds as well.
func writePid(f *os.File) error {
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	_, err := f.WriteAt(pid, 0)
	if err == nil {
		err = f.Truncate(int64(len(pid)))
	}
	if err != nil && !isFull(err) {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// errHeld names the holder; the file may still be empty when both start at once.
func errHeld(dir string, f *os.File) error {
	holder := "another process"
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		holder = fmt.Sprintf("process %d", pid)
	}
	return &jobhost.Error{
		Code:    jobhost.CodeConflict,
		Message: fmt.Sprintf("the directory %s is in use by %s", dir, holder),
		Hint:    "stop that jobhost first, or give this one another directory; its API serves any number of clients",
	}
}

// release gives the directory back. A nil lock is fine.
func (l *lockFile) release() {
	if l == nil {
		return
	}
	for _, f := range []*os.File{l.witness, l.file} {
		if f != nil {
			// A program that is just being started still has a copy of the file, which would keep the lock.
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			_ = f.Close()
		}
	}
}
