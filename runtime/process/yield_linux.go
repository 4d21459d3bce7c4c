package process

import "syscall"

// yieldThread lets another thread run on this processor, if one waits for it: perhaps the process that is waited for.
func yieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
