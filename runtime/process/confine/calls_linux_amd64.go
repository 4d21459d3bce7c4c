package confine

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // and above: the numbers of x32
)

var (
	plainCallsHere   = []uint32{unix.SYS_POLL, unix.SYS_TIME}
	programCallsHere = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
	adminCallsHere   = []uint32{unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS}
)
