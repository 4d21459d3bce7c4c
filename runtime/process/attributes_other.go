//go:build !linux

package process

import "syscall"

// sandboxAttributes make a process the first of a group. Only the end of its stream tells it that
// the host has gone.
func sandboxAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
