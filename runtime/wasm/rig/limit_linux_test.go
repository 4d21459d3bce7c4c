package rig_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitAddressSpace makes a module that asks for all memory end its process and
// not the machine. The race detector needs more address space than there is, so
// with it there is no limit.
func limitAddressSpace(n uint64) error {
	if raceEnabled {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		return fmt.Errorf("limit the address space: %w", err)
	}
	return nil
}
