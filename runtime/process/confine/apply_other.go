//go:build !linux

package confine

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// rlimitProcesses is missing in x/sys/unix for some systems; all BSD descendants use this number.
const rlimitProcesses = 7

func apply(c Config) (Report, error) {
	r := available()
	r.Missing = nil
	for _, m := range []struct {
		wanted bool
		name   string
	}{
		{c.Files, "files"},
		{c.NoNetwork, "network"},
		{c.Calls != AllCalls, "system calls"},
	} {
		if m.wanted {
			r.Missing = append(r.Missing, m.name+" (not on "+runtime.GOOS+")")
		}
	}
	return r, nil
}

func available() Report {
	return Report{Missing: []string{"Landlock and seccomp (not on " + runtime.GOOS + ")"}}
}

func limitOwnCPU(d time.Duration) error { return lower(unix.RLIMIT_CPU, seconds(d)) }

// LimitCPU fails: only Linux can set how much CPU time another process may use.
func LimitCPU(pid int, _ time.Duration) error { return notHere(pid) }

// LimitMemory fails: only Linux can set how much memory another process may have.
func LimitMemory(pid int, _ Memory) error { return notHere(pid) }

// LimitOpenFiles fails: only Linux can set how many files another process may have open.
func LimitOpenFiles(pid, _ int) error { return notHere(pid) }

func notHere(pid int) error {
	return fmt.Errorf("set a limit of process %d: %w", pid, errors.ErrUnsupported)
}
