package process

import (
	"errors"
	"syscall"
)

// killGroup ends a process and all of its group.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil // there is nobody left
}
