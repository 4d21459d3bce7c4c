package confine

import (
	"fmt"
	"os"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// apply does what only Linux can. Each step may need what a later one takes away, so the list of system calls comes
// last.
func apply(c Config) (r Report, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if c.EndFirst { // first, as it can't write that file later
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
			r.Missing = append(r.Missing, "ending first when memory runs out ("+err.Error()+")")
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return r, fmt.Errorf("keep its memory to itself: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return r, fmt.Errorf("renounce new privileges: %w", err)
	}
	if c.Files || c.NoNetwork || c.Calls == SandboxCalls {
		if err := restrict(c, &r); err != nil {
			return r, fmt.Errorf("restrict files: %w", err)
		}
	}
	if !c.KeepCapabilities {
		// A host run as root means folders of other users, too; Landlock has just limited which.
		if err := dropCapabilities(r.Files); err != nil {
			return r, fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if c.Calls != AllCalls {
		if err := filter(c, &r); err != nil {
			return r, fmt.Errorf("restrict system calls: %w", err)
		}
	}
	// Installing a list of system calls sets no_new_privs for all threads. Any other way takes a signal to each of
	// them, and finding them in /proc, which may belong to another PID namespace.
	if r.Calls == AllCalls {
		if err := syscall.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return r, fmt.Errorf("renounce new privileges: %w", err)
		}
	}
	r.NoNewPrivileges = true
	return r, nil
}

func available() Report {
	r := Report{NoNewPrivileges: true, Landlock: landlockVersion()}
	r.Files, r.Network, r.Signals = r.Landlock >= filesVersion, r.Landlock >= networkVersion, scopes(r.Landlock)
	if r.Landlock == 0 {
		r.Missing = append(r.Missing, missingLandlock)
	}
	switch reason := filterFault(); reason {
	case "":
		r.Calls = SandboxCalls
	default:
		r.Missing = append(r.Missing, reason)
	}
	return r
}
