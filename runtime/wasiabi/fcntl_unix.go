//go:build unix

package wasiabi

import (
	"os"

	"golang.org/x/sys/unix"
)

// setAppend makes writes go to the end of a file, or to its current position again.
func setAppend(f *os.File, on bool) error {
	return control(f, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		flags &^= unix.O_APPEND
		if on {
			flags |= unix.O_APPEND
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		return err
	})
}

func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}
