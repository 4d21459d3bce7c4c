package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setLimits sets the limits of the calling process.
func setLimits(l Limits) error {
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
		set      bool
	}{
		{"core dumps", unix.RLIMIT_CORE, 0, true},
		{"address space", unix.RLIMIT_AS, uint64(l.AddressSpace), l.AddressSpace > 0},
		{"data", unix.RLIMIT_DATA, uint64(l.Data), l.Data > 0 && !l.Raisable},
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize), l.FileSize > 0},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles), l.OpenFiles > 0},
		{"processes", rlimitProcesses, uint64(l.Processes), l.Processes > 0},
	} {
		if !limit.set {
			continue
		}
		if err := lower(limit.resource, limit.value); err != nil {
			return fmt.Errorf("%s: %w", limit.name, err)
		}
	}
	if l.Data > 0 && l.Raisable {
		if err := change(unix.RLIMIT_DATA, func(r *unix.Rlimit) { r.Cur = atMost(uint64(l.Data), r.Max) }); err != nil {
			return fmt.Errorf("data: %w", err)
		}
	}
	if l.CPU == 0 {
		return nil
	}
	if err := limitOwnCPU(l.CPU); err != nil {
		return fmt.Errorf("CPU time: %w", err)
	}
	return nil
}

// lower sets both limits of a resource. One that is lower already stays.
func lower(resource int, value uint64) error {
	return change(resource, func(r *unix.Rlimit) { r.Cur, r.Max = atMost(value, r.Max), atMost(value, r.Max) })
}

// atMost returns the smaller one, in the type that the system has for limits.
func atMost[T int64 | uint64](value uint64, limit T) T { return min(T(value), limit) }

func change(resource int, how func(*unix.Rlimit)) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return err
	}
	how(&r)
	return unix.Setrlimit(resource, &r)
}
