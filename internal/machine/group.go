// Package machine determines the resources that the machine gives the process.
package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Group returns the folder of the control group that the process is in (cgroup v2),
// which exists on Linux only.
func Group() (string, error) {
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

// find returns the folder of a process's group, given the contents of its group and
// mount files in /proc.
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
