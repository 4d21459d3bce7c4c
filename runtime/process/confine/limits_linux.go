package confine

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const rlimitProcesses = unix.RLIMIT_NPROC

// limitOwnCPU leaves the hard limit as it is, so that the host can raise the soft one without privileges. Go
// ignores the signal that is sent then, so the kernel is set to its default action: ending the process.
func limitOwnCPU(d time.Duration) error {
	var byDefault [4]uint64 // a struct sigaction, with SIG_DFL and no flags, valid on all architectures
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return lowerSoft(unix.RLIMIT_CPU, seconds(d))
}

// LimitCPU sets how much CPU time another process of the same user may use in total since its start; 0 = any. It
// can raise what [Limits] set.
func LimitCPU(pid int, d time.Duration) error { return limitOther(pid, unix.RLIMIT_CPU, seconds(d)) }

// LimitMemory sets how much memory another process of the same user may have; 0 = no limit. It can raise what [Limits]
// set if they are Raisable.
func LimitMemory(pid int, m Memory) error {
	return errors.Join(limitOther(pid, unix.RLIMIT_DATA, uint64(m.Data)), limitOther(pid, unix.RLIMIT_AS, uint64(m.AddressSpace)))
}

// LimitOpenFiles sets how many files another process of the same user may have open. It can raise what [Limits] set if
// they are Raisable.
func LimitOpenFiles(pid, n int) error { return limitOther(pid, unix.RLIMIT_NOFILE, uint64(n)) }

func limitOther(pid, resource int, value uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &limit); err != nil {
		return fmt.Errorf("read a limit of process %d: %w", pid, err)
	}
	limit.Cur = limit.Max
	if value > 0 {
		limit.Cur = min(value, limit.Max)
	}
	if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
		return fmt.Errorf("set a limit of process %d: %w", pid, err)
	}
	return nil
}
