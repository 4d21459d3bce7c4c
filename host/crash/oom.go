package crash

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// kills counts processes that the kernel's OOM killer has ended.
type kills struct {
	// Group is the host's cgroup, and InGroup the kills in it since it was created.
	Group   string `json:"group,omitempty"`
	InGroup int64  `json:"in_group,omitempty"`
	// InAll counts those on the machine since it was booted.
	InAll int64 `json:"in_all,omitempty"`
}

// since returns the kills since before. Counts of a cgroup that was created since don't
// compare.
func (k kills) since(before kills) (inGroup, inAll int64) {
	if k.Group == before.Group {
		inGroup = max(k.InGroup-before.InGroup, 0)
	}
	return inGroup, max(k.InAll-before.InAll, 0)
}

// system reports what the OOM killer did.
type system interface{ kills() kills }

// linux reads the counters of a Linux kernel from files below root. Other systems have no
// such files, so all counts are zero there.
type linux struct{ root string }

func (l linux) kills() kills {
	k := kills{InAll: count(filepath.Join(l.root, "proc/vmstat"), "oom_kill")}
	text, err := os.ReadFile(filepath.Join(l.root, "proc/self/cgroup"))
	if err != nil {
		return k
	}
	for line := range strings.Lines(string(text)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok { // cgroup v2
			k.Group = group
			k.InGroup = count(filepath.Join(l.root, "sys/fs/cgroup", group, "memory.events"), "oom_kill")
		}
	}
	return k
}

// count returns the number that follows a name in a file of such lines; 0 = it is missing.
func count(path, name string) int64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
