package sqlitedb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ReserveName is the name of the file that keeps room back.
const ReserveName = "jobhost.reserve"

// reserveBytes is how much is kept back: as much as the log holds when it is
// moved into the database, so that this can be done once more on a full disk;
// then the log has room again for what has ended.
const reserveBytes = walSoft * 4096

// reserve is a file without content that has its room on the disk. The room is
// given up when the disk is full, and taken back when there is enough of it. A
// nil reserve has no room.
type reserve struct{ path string }

func newReserve(dir string) *reserve { return &reserve{filepath.Join(dir, ReserveName)} }

// take takes the room, if it isn't taken; an error that [isFull] says that there
// is too little.
func (r *reserve) take() error {
	if r == nil {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = r.fill(f); err != nil {
		// What it got is left to others.
		err = errors.Join(fmt.Errorf("keep room back in %s: %w", r.path, err), f.Truncate(0))
	}
	return errors.Join(err, f.Close())
}

// fill gives the file its room, unless it has it.
func (r *reserve) fill(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Blocks*512 >= reserveBytes {
		return nil
	}
	// Looked at first, so that a try takes nothing from others.
	free, err := FreeSpace(filepath.Dir(r.path))
	if err == nil && free < reserveBytes {
		err = syscall.ENOSPC
	}
	if err == nil {
		err = allocate(f, reserveBytes)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // nothing can be kept back here, but there is room
	}
	return err
}

// release gives the room up.
func (r *reserve) release() error {
	if r == nil {
		return nil
	}
	if err := os.Truncate(r.path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
