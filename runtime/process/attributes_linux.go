package process

import (
	"os"
	"syscall"
)

// sandboxAttributes make a process the leader of its own group, and end it with the host, however the host ends.
func sandboxAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inGroup makes a process start inside a control group, so that it is never outside.
func inGroup(sys *syscall.SysProcAttr, folder *os.File) *syscall.SysProcAttr {
	within := *sys
	within.UseCgroupFD, within.CgroupFD = true, int(folder.Fd())
	return &within
}
