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

// guardAttributes start a guard. Where that is allowed it gets a number space of its own, whose processes the
// system ends with it, however it ends, and mounts of its own, so that they see no others. Elsewhere it has to end
// them itself, and is told when the host has gone.
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

// becomeReaper makes every process that loses its parent a child of this one, if it descends from it.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a reaper: %w", err)
	}
	return nil
}

// hideOthers makes /proc show nothing but the processes of the guard's number space, if it has one: those of the same
// user can otherwise read each other's environment there.
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

// reap ends all that descends from this process. Whatever loses its parent meanwhile becomes a child and is
// found in the next round.
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

// killDescendants kills the children, or in a number space of its own everything there is, and reports whether there
// was something.
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
