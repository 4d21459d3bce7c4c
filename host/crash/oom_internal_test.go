package crash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOOM(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		before, after kills
		want          How
		cause         string
	}{
		{"nothing", kills{Group: "/a", InGroup: 3, InAll: 9}, kills{Group: "/a", InGroup: 3, InAll: 9}, Killed, "as by SIGKILL"},
		{"in the cgroup", kills{Group: "/a", InGroup: 3, InAll: 9}, kills{Group: "/a", InGroup: 4, InAll: 10}, OOM, "1 processes of the host's cgroup /a"},
		{"elsewhere", kills{Group: "/a", InGroup: 3, InAll: 9}, kills{Group: "/a", InGroup: 3, InAll: 11}, Killed, "perhaps"},
		{"cgroup made anew", kills{Group: "/a", InGroup: 3, InAll: 9}, kills{Group: "/a", InAll: 10}, Killed, "perhaps"},
		{"another cgroup", kills{Group: "/a", InGroup: 3}, kills{Group: "/b", InGroup: 7}, Killed, "as by SIGKILL"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ended := endOf(nil, "", test.before, test.after)
			if ended.How != test.want || !strings.Contains(ended.Cause, test.cause) {
				t.Errorf("%+v", ended)
			}
		})
	}
	if ended := endOf([]byte("fatal error: out of memory\n"), "f", kills{}, kills{InAll: 1}); ended.How != Fatal || ended.Cause != "fatal error: out of memory" {
		t.Errorf("with a text: %+v", ended)
	}
}

func TestKernelCounts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/vmstat":      "nr_free_pages 5\noom_kill 12\noom_kill_disable 7\n",
		"proc/self/cgroup": "1:name=systemd:/x\n0::/jobs/host.service\n",
		"sys/fs/cgroup/jobs/host.service/memory.events": "low 0\nhigh 0\nmax 4\noom 3\noom_kill 2\noom_group_kill 1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := (linux{root}).kills(), (kills{Group: "/jobs/host.service", InGroup: 2, InAll: 12}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (linux{t.TempDir()}).kills(); got != (kills{}) {
		t.Errorf("of a system without counters: %+v", got)
	}
}
