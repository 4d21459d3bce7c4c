package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardAttributes start a guard. Where permitted it gets a PID namespace of its own, whose processes the system
// kills with it, however it ends, and a mount namespace of its own, so that they see no others. Otherwise it has
// to kill them itself, and gets a signal when the host has gone.
func guardAttributes(space bool) *syscall.SysProcAttr {
	if space {
		return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// guardedAttributes end a plugin with its guard.
func guardedAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// becomeReaper makes every orphaned descendant of this process a child of it.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a reaper: %w", err)
	}
	return nil
}

// hideOthers makes /proc show only the processes of the guard's PID namespace, if it has one: otherwise processes of
// the same user can read each other's environment there.
func hideOthers() error {
	if os.Getpid() != 1 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// reap kills all descendants of this process. What is orphaned in the process becomes a child and is found
// in the next round.
func reap() {
	for range 1000 {
		if !killDescendants() {
			return
		}
		for {
			var status syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// killDescendants kills the children, or in a PID namespace everything there is, and reports whether there was
// anything.
func killDescendants() bool {
	if os.Getpid() == 1 {
		return syscall.Kill(-1, syscall.SIGKILL) == nil
	}
	some := false
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // of a thread that has ended there is none
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				some = syscall.Kill(pid, syscall.SIGKILL) == nil || some
			}
		}
	}
	return some
}
