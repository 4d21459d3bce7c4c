package process

import "syscall"

// attributes make a process the first of a group, and end it with the host, however that ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
