package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// dropCapabilities drops root's privileges in all threads. override keeps the one to open files of other users.
func dropCapabilities(override bool) error {
	head := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	have := new([2]unix.CapUserData)
	if err := unix.Capget(head, &have[0]); err != nil {
		return err
	}
	left := new([2]unix.CapUserData)
	if override {
		left[0].Permitted = have[0].Permitted & (1 << unix.CAP_DAC_OVERRIDE)
		left[0].Effective = have[0].Effective & left[0].Permitted
	}
	if have[0].Permitted|have[1].Permitted|have[0].Inheritable|have[1].Inheritable == 0 {
		return nil
	}
	var pin runtime.Pinner // the compiler doesn't recognize psx as a system call
	defer pin.Unpin()
	pin.Pin(head)
	pin.Pin(left)
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(head)), uintptr(unsafe.Pointer(left)), 0); errno != 0 {
		return errno
	}
	return nil
}
