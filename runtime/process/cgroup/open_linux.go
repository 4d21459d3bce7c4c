package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Open divides the group of the calling process, or says why that can't be. It can be if
//
//   - the kernel has memory and pids as controllers of cgroup v2,
//   - the group was delegated: by systemd (Delegate=yes), to the user, or as the one of a container,
//   - and it has no process but this one, since the others would be in the way and are not the host's to move.
func Open() (*Tree, error) {
	dir, err := own()
	if err != nil {
		return nil, err
	}
	if filepath.Base(dir) != hostName {
		if err := mayDivide(dir); err != nil {
			// Unless another engine of this host has divided it meanwhile.
			if dir, _ = own(); filepath.Base(dir) != hostName {
				return nil, err
			}
		}
	}
	return divide(dir, os.Getpid(), kernel())
}

// own returns the folder of the process's group.
func own() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return find(string(groups), string(mounts))
}

var errNoCgroup = errors.New("there is no cgroup v2")

// find returns the folder of a process's group by what /proc says of its groups and its mounts.
func find(groups, mounts string) (string, error) {
	var group string
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = path
		}
	}
	if group == "" {
		return "", errNoCgroup
	}
	for line := range strings.Lines(mounts) {
		// 36 35 98:0 /root /mount/point options [tags] - type source options
		mount, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if len(fields) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		if below, err := filepath.Rel(fields[3], group); err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below), nil
		}
	}
	return "", fmt.Errorf("%w that shows the group %s", errNoCgroup, group)
}

// mayDivide says why a group can't be divided; nil = it can.
func mayDivide(dir string) error {
	have, err := read(dir, controllersFile)
	if err != nil {
		return err
	}
	for _, need := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(have), need) {
			return fmt.Errorf("the group has no controller %s", need)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, procsFile), filepath.Join(dir, divisionFile)} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("the group can't be changed: %s: %w", path, err)
		}
	}
	if err := delegated(dir, os.Geteuid()); err != nil {
		return err
	}
	inside, err := read(dir, procsFile)
	if err != nil {
		return err
	}
	if inside != strconv.Itoa(os.Getpid()) {
		return errors.New("there are other processes in the host's group")
	}
	return nil
}

// delegated says why a group is not the host's to divide, although it could be written; nil = it is.
func delegated(dir string, user int) error {
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		return err
	}
	if user != 0 && int(info.Uid) == user {
		return nil // it was given to that user
	}
	for _, attribute := range []string{"trusted.delegate", "user.delegate"} { // of systemd
		value := make([]byte, 1)
		if n, err := unix.Getxattr(dir, attribute, value); err == nil && string(value[:n]) == "1" {
			return nil
		}
	}
	// The root of a container's own hierarchy looks like that of all, but has a type.
	groups, err := os.ReadFile("/proc/self/cgroup")
	_, typeErr := os.Stat(filepath.Join(dir, "cgroup.type"))
	if err == nil && typeErr == nil && strings.Contains("\n"+string(groups), "\n0::/\n") {
		return nil
	}
	return errors.New("the group was not delegated to the host (for systemd: Delegate=yes)")
}

// MachineMemory returns how much memory there is for the process: that of the machine, or of its control groups if
// that is less, in bytes.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return unknownMemory
	}
	least := int64(info.Totalram) * int64(info.Unit)
	dir, err := own()
	for err == nil {
		var text string
		if text, err = read(dir, memoryFile); err != nil {
			break // above the highest, or the controller is another version's
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil { // or "max"
			least = min(least, n)
		}
		dir = filepath.Dir(dir)
	}
	return least
}
