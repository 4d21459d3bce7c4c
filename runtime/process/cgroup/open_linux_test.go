package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost/internal/machine"
)

// TestMayDivide: each condition alone prevents it.
func TestMayDivide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, controllers, inside, want string
	}{
		{"no memory", "cpu pids", "", "no controller memory"},
		{"no pids", "cpu memory", "", "no controller pids"},
		{"not delegated", "memory pids", "1", "not delegated"},
	} {
		dir := t.TempDir()
		if err := fill(dir, divisionFile); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{controllersFile: test.controllers, procsFile: test.inside} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := mayDivide(dir); test.name == "not delegated" && os.Geteuid() != 0 {
			continue // the folder is the user's
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestDelegated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := delegated(dir, os.Geteuid()); (err == nil) != (os.Geteuid() != 0) {
		t.Error(err)
	}
	if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
		t.Log("this file system has no such attributes:", err)
		return
	}
	if err := delegated(dir, 0); err != nil {
		t.Error("systemd has delegated it:", err)
	}
}

// TestOpen: if the group of this process may be divided there is a tree, otherwise a reason.
func TestOpen(t *testing.T) {
	t.Parallel()
	tree, err := Open()
	if (tree == nil) == (err == nil) {
		t.Fatal(tree, err)
	}
	if err != nil {
		t.Log(err)
		return
	}
	g, err := tree.New(Limits{Memory: 64 << 20, Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	within(t, g)
}

// within starts a process in a group that the kernel has made, and checks where it is.
func within(t *testing.T, g *Group) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/cat", "/proc/self/cgroup")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.Folder().Fd())}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), filepath.Base(g.path)) {
		t.Errorf("it is in %s, %v", out, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	g.tree.Close()
	if _, err := os.Stat(g.path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the group is left:", err)
	}
}

// TestKernelGroup puts a process into a real group without controllers, if this is root with cgroup v2.
func TestKernelGroup(t *testing.T) {
	t.Parallel()
	dir, err := machine.Group()
	if err != nil {
		t.Log(err)
		return
	}
	path := filepath.Join(dir, prefix+"test-"+strings.ToLower(t.Name()))
	if err := kernel().make(path); err != nil {
		t.Log(err)
		return
	}
	folder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	within(t, &Group{tree: &Tree{dir: dir, system: kernel()}, path: path, folder: folder})
}
