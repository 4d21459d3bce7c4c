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

	"github.com/jobhost/jobhost/internal/machine"
)

// Open divides the group of the calling process, or returns why that is impossible. It is possible if
//
//   - the kernel has memory and pids as controllers of cgroup v2,
//   - the group was delegated: by systemd (Delegate=yes), to the user, or as the one of a container,
//   - and it has no process but this one, since the others would be in the way and are not the host's to move.
func Open() (*Tree, error) {
	dir, err := machine.Group()
	if err != nil {
		return nil, err
	}
	if filepath.Base(dir) != hostName {
		if err := mayDivide(dir); err != nil {
			// Unless another engine of this host has just divided it.
			if dir, _ = machine.Group(); filepath.Base(dir) != hostName {
				return nil, err
			}
		}
	}
	return divide(dir, os.Getpid(), kernel())
}

// mayDivide returns why a group can't be divided; nil = it can.
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

// delegated returns why a group is not the host's to divide, even if it is writable; nil = it is.
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
	// The root of a container's own hierarchy looks like the root of the system's, but has a type.
	groups, err := os.ReadFile("/proc/self/cgroup")
	_, typeErr := os.Stat(filepath.Join(dir, "cgroup.type"))
	if err == nil && typeErr == nil && strings.Contains("\n"+string(groups), "\n0::/\n") {
		return nil
	}
	return errors.New("the group was not delegated to the host (for systemd: Delegate=yes)")
}
