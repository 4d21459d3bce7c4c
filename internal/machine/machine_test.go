package machine

import (
	"errors"
	"testing"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 8:1 / / rw - ext4 /dev/sda rw
30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw
`
	const container = "30 22 0:26 /docker/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	for _, test := range []struct {
		name, groups, mounts, want string
	}{
		{"a service", "0::/system.slice/jobhost.service\n", mounts, "/sys/fs/cgroup/system.slice/jobhost.service"},
		{"besides version 1", "4:memory:/x\n0::/y\n", mounts, "/sys/fs/cgroup/y"},
		{"the root", "0::/\n", mounts, "/sys/fs/cgroup"},
		{"a container", "0::/docker/a/b\n", container, "/sys/fs/cgroup/b"},
		{"outside of what is mounted", "0::/docker/b\n", container, ""},
		{"version 1 alone", "4:memory:/x\n", mounts, ""},
		{"not mounted", "0::/x\n", "22 1 8:1 / / rw - ext4 /dev/sda rw\n", ""},
	} {
		got, err := find(test.groups, test.mounts)
		if got != test.want || (err == nil) != (test.want != "") || err != nil && !errors.Is(err, errNoCgroup) {
			t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.want)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	if got := Memory(); got < 64<<20 {
		t.Errorf("%d bytes", got)
	}
}
