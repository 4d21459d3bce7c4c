package snapshot

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// files are reserved for images, opened by [Reserve].
var files reserved

// reserved are files in memory that can't become larger than they are.
type reserved struct {
	mu   sync.Mutex // protects the rest
	fds  []int      // each can be sealed
	size int        // bytes of each
}

// Reserve opens the files of that many images now, each of at most size bytes, for a process that won't be able to
// open any later. They cost next to nothing until they are used. Further images are created as usual.
func Reserve(images int, size int64) error {
	files.mu.Lock()
	defer files.mu.Unlock()
	files.size = int(size)
	for range images {
		fd, err := createMemfd()
		if err != nil {
			return fmt.Errorf("reserve an image: create a memfd: %w", err)
		}
		files.fds = append(files.fds, fd)
		if err := unix.Ftruncate(fd, size); err != nil {
			return fmt.Errorf("reserve an image: size the memfd: %w", err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW); err != nil {
			return fmt.Errorf("reserve an image: seal the memfd: %w", err)
		}
	}
	return nil
}

// take returns a file for an image of a size: a reserved one, or a new one.
func (r *reserved) take(size int) (fd int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.fds) - 1; last >= 0 && size <= r.size {
		fd, r.fds = r.fds[last], r.fds[:last]
		return fd, nil
	}
	return createMemfd()
}

// giveUp closes a file that did not become an image. A reserved one is kept for the next try, as there may be no other.
func (r *reserved) giveUp(fd int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asReserved(fd) && unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(r.size)) == nil {
		r.fds = append(r.fds, fd)
		return
	}
	_ = unix.Close(fd) // the error that led here says more
}

// asReserved reports whether a file can still become any image.
func (r *reserved) asReserved(fd int) bool {
	var info unix.Stat_t
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil && have&seals == unix.F_SEAL_GROW && unix.Fstat(fd, &info) == nil && info.Size == int64(r.size)
}
