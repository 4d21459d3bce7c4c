package sqlitedb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Bytes of the database, and of the index of its log, that programs lock:
// https://sqlite.org/walformat.html#wal_locks
const (
	lockBytes, lockCount       = 0x40000000, 3 // the third is the first of a range
	indexLockBytes, indexLocks = 120, 8
)

// lockHolder names the process that holds a lock of a database, "another program" if it is unknown.
func lockHolder(path string) string {
	pid := holderOf(path+"-shm", indexLockBytes, indexLocks)
	if pid == 0 {
		pid = holderOf(path, lockBytes, lockCount)
	}
	if pid == 0 {
		return "another program"
	}
	name, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "comm"))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// holderOf returns the process that holds one of the locks of a file. This process's own belong
// to open files, and have no process.
func holderOf(path string, at int64, count int) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // nothing was written
	// A lock that excludes all is asked for first: of readers there may be many.
	for _, kind := range []int16{syscall.F_RDLCK, syscall.F_WRLCK} {
		for i := range int64(count) {
			lock := syscall.Flock_t{Type: kind, Start: at + i, Len: 1}
			if syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock) == nil && lock.Type != syscall.F_UNLCK && lock.Pid > 0 && int(lock.Pid) != os.Getpid() {
				return int(lock.Pid)
			}
		}
	}
	return 0
}
