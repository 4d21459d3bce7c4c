package process

import (
	"errors"
	"syscall"
)

// killGroup kills a process and its whole group.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil // no process is left
}
