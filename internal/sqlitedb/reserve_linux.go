package sqlitedb

import (
	"errors"
	"os"
	"syscall"
)

// allocate gives a file so many bytes, with room on the disk for each of them.
func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
