package sqlitedb

import (
	"errors"
	"os"
	"syscall"
)

// dataSync makes the content of a file durable whose size stays the same. The time of the last write
// may be lost, so it needs no commit of the file system's journal.
func dataSync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
