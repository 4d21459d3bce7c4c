//go:build !linux

package process

import (
	"os"
	"syscall"
)

// sandboxAttributes make a process the leader of its own group. Only the end of its stream tells
// it that the host has gone.
func sandboxAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// inGroup does nothing: there are no control groups.
func inGroup(sys *syscall.SysProcAttr, _ *os.File) *syscall.SysProcAttr { return sys }
