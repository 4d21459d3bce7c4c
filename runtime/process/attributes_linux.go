package process

import "syscall"

// sandboxAttributes make a process the first of a group, and end it with the host, however that ends.
func sandboxAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
