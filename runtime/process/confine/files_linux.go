package confine

import (
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Versions of Landlock's interface, and what they introduced.
const (
	filesVersion    = 1 // Linux 5.13
	referVersion    = 2 // renaming from folder to folder
	truncateVersion = 3 // Linux 6.2
	networkVersion  = 4 // Linux 6.7
	scopeVersion    = 6 // Linux 6.12
	threadsVersion  = 8 // applies to all threads at once
)

const missingLandlock = "files, TCP and signals (the kernel has no Landlock, or it isn't turned on)"

// landlockVersion returns the version that the kernel has; 0 = none.
func landlockVersion() int {
	v, err := syscall.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// scopes reports whether signals to others can be forbidden. Before version 8 each thread is restricted separately,
// and a kernel without erratum 2 fixed would then forbid signals between threads, which Go needs.
func scopes(version int) bool {
	if version >= threadsVersion {
		return true
	}
	errata, err := syscall.LandlockGetErrata()
	return version >= scopeVersion && err == nil && errata&(1<<1) != 0
}

// restrict puts all threads under Landlock.
func restrict(c Config, r *Report) error {
	version := landlockVersion()
	r.Landlock = version
	if version == 0 {
		r.Missing = append(r.Missing, missingLandlock)
		return nil
	}
	config := landlock.V11
	if !c.Files {
		config.HandledAccessFS = 0
	}
	if !c.NoNetwork && c.Calls != SandboxCalls {
		config.HandledAccessNet = 0
	}
	if !scopes(version) {
		config.Scoped = 0
	}
	var rules []landlock.Rule
	if c.Files {
		for _, p := range c.Paths {
			rules = append(rules, landlock.PathAccess(p.rights(version), p.Path).IgnoreIfMissing())
		}
	}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return err
	}
	r.Files = c.Files
	r.Network = config.HandledAccessNet != 0 && version >= networkVersion
	r.Signals = config.Scoped != 0
	if c.Files && version < truncateVersion {
		r.Missing = append(r.Missing, "truncating files that may only be read (since Linux 6.2)")
	}
	if config.HandledAccessNet != 0 && !r.Network {
		r.Missing = append(r.Missing, "TCP (since Linux 6.7)")
	}
	if !r.Signals {
		r.Missing = append(r.Missing, "signals (since Linux 6.12, with its corrections)")
	}
	return nil
}

// rights returns what may be done below a path.
func (p Path) rights(version int) landlock.AccessFSSet {
	var dir, file landlock.AccessFSSet = syscall.AccessFSReadDir, syscall.AccessFSReadFile
	if p.Write {
		file |= syscall.AccessFSWriteFile | syscall.AccessFSTruncate
		dir |= syscall.AccessFSMakeReg | syscall.AccessFSMakeDir | syscall.AccessFSMakeSym |
			syscall.AccessFSMakeSock | syscall.AccessFSMakeFifo |
			syscall.AccessFSRemoveFile | syscall.AccessFSRemoveDir
		if version >= referVersion { // if requested without support, go-landlock would do nothing at all
			dir |= syscall.AccessFSRefer
		}
	}
	if p.Execute {
		file |= syscall.AccessFSExecute
	}
	if info, err := os.Stat(p.Path); err == nil && !info.IsDir() {
		return file
	}
	return file | dir
}
