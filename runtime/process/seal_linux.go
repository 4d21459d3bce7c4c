package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// seal returns an immutable copy of a program, which not even this process can change: what was verified is what runs.
func seal(name string, program []byte) (_ *os.File, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, flags) // before Linux 6.3 all are executable
	}
	if err != nil {
		return nil, fmt.Errorf("make a place for the program: %w", err)
	}
	writing := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, writing.Close()) }()
	if _, err := writing.Write(program); err != nil {
		return nil, fmt.Errorf("copy the program: %w", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("seal the program: %w", err)
	}
	// A file that is open for writing can't be executed.
	reading, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, fmt.Errorf("open the program: %w", err)
	}
	return reading, nil
}

// programPath is where a process finds the program that it was given as descriptor 3.
func programPath() string { return "/proc/self/fd/3" }
