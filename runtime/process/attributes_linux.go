package process

import (
	"os"
	"syscall"
)

// sandboxAttributes make a process the first of a group, and end it with the host, however that ends.
func sandboxAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inGroup makes a process start in a control group, so that it never is outside of it.
func inGroup(sys *syscall.SysProcAttr, folder *os.File) *syscall.SysProcAttr {
	within := *sys
	within.UseCgroupFD, within.CgroupFD = true, int(folder.Fd())
	return &within
}
