package link

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen gives a pipe room for a batch, so that sending a payload doesn't block for the reader again and again. If the
// system refuses that, it does.
func widen(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, maxBatch) })
	}
}
