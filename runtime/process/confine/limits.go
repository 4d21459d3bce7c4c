package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setLimits sets the limits of the calling process.
func setLimits(l Limits) error {
	raisable := lower
	if l.Raisable {
		raisable = lowerSoft
	}
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return fmt.Errorf("core dumps: %w", err)
	}
	for _, limit := range []struct {
		name     string
		resource int
		value    int64 // 0 = unchanged
		set      func(resource int, value uint64) error
	}{
		{"address space", unix.RLIMIT_AS, l.AddressSpace, raisable},
		{"data", unix.RLIMIT_DATA, l.Data, raisable},
		{"open files", unix.RLIMIT_NOFILE, int64(l.OpenFiles), raisable},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize, lower},
		{"processes", rlimitProcesses, int64(l.Processes), lower},
	} {
		if limit.value == 0 {
			continue
		}
		if err := limit.set(limit.resource, uint64(limit.value)); err != nil {
			return fmt.Errorf("%s: %w", limit.name, err)
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

// lower lowers both limits of a resource. One that is already lower stays.
func lower(resource int, value uint64) error {
	return change(resource, func(r *unix.Rlimit) { r.Cur, r.Max = atMost(value, r.Max), atMost(value, r.Max) })
}

// lowerSoft leaves the hard limit of a resource.
func lowerSoft(resource int, value uint64) error {
	return change(resource, func(r *unix.Rlimit) { r.Cur = atMost(value, r.Max) })
}

// atMost returns the smaller one, in the type that the system uses for limits.
func atMost[T int64 | uint64](value uint64, limit T) T { return min(T(value), limit) }

func change(resource int, how func(*unix.Rlimit)) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return err
	}
	how(&r)
	return unix.Setrlimit(resource, &r)
}
