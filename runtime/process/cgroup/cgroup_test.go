package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// folders simulates the kernel: a new group has files, and one with processes can't be removed.
func folders() system {
	return system{
		make: func(dir string) error {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			return errors.Join(fill(dir, procsFile, killFile, memoryFile, togetherFile, processesFile, divisionFile))
		},
		remove: func(dir string) error {
			inside, err := read(dir, procsFile)
			killed, killErr := read(dir, killFile)
			switch {
			case err != nil:
				return err
			case inside != "" && (killErr != nil || killed != "1"):
				return syscall.EBUSY
			}
			return os.RemoveAll(dir)
		},
	}
}

func fill(dir string, files ...string) error {
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func testTree(t *testing.T) (*Tree, string) {
	t.Helper()
	dir := t.TempDir()
	if err := fill(dir, procsFile, divisionFile); err != nil {
		t.Fatal(err)
	}
	tree, err := divide(dir, 42, folders())
	if err != nil {
		t.Fatal(err)
	}
	return tree, dir
}

// groupsIn lists the groups of processes.
func groupsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

func wantFile(t *testing.T, dir, file, want string) {
	t.Helper()
	if got, err := read(dir, file); err != nil || got != want {
		t.Errorf("%s of %s: %q, %v, want %q", file, filepath.Base(dir), got, err, want)
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	tree, dir := testTree(t)
	wantFile(t, filepath.Join(dir, hostName), procsFile, "42")
	wantFile(t, dir, divisionFile, "+memory +pids")

	g, err := tree.New(Limits{Memory: 1 << 20, Processes: 7})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "jobhost-42-1")
	wantFile(t, path, memoryFile, "1048576")
	wantFile(t, path, togetherFile, "1")
	wantFile(t, path, processesFile, "7")
	if g.Folder().Name() != path {
		t.Errorf("processes start in %s", g.Folder().Name())
	}
	if err := g.SetMemory(5); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, memoryFile, "5")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if left := groupsIn(t, dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestAnotherEngine: a second tree of the same host divides the same group, under other names.
func TestAnotherEngine(t *testing.T) {
	t.Parallel()
	first, dir := testTree(t)
	second, err := divide(filepath.Join(dir, hostName), 42, folders())
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range []*Tree{first, second} {
		if _, err := tree.New(Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := groupsIn(t, dir); !slices.Equal(got, []string{"jobhost-42-1", "jobhost-42-2"}) {
		t.Errorf("the groups are %v", got)
	}
}

// TestBusyGroup: a group whose processes the kernel is still ending is removed later.
func TestBusyGroup(t *testing.T) {
	t.Parallel()
	tree, dir := testTree(t)
	busy := true
	remove := tree.system.remove
	tree.system.remove = func(path string) error {
		if busy {
			return syscall.EBUSY
		}
		return remove(path)
	}
	g, err := tree.New(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil || len(groupsIn(t, dir)) != 1 {
		t.Fatal(err, groupsIn(t, dir))
	}
	busy = false
	next, err := tree.New(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := groupsIn(t, dir); !slices.Equal(got, []string{"jobhost-42-2"}) {
		t.Errorf("the groups are %v", got)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	tree.Close()
}

// TestSweep: what a killed host has left behind is removed, unless there are processes in it.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := fill(dir, procsFile, divisionFile); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobhost-7-1", "jobhost-7-2", "other"} {
		if err := folders().make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(filepath.Join(dir, "jobhost-7-2"), procsFile, 99); err != nil {
		t.Fatal(err)
	}
	if _, err := divide(dir, 42, folders()); err != nil {
		t.Fatal(err)
	}
	if got := groupsIn(t, dir); !slices.Equal(got, []string{"jobhost-7-2"}) {
		t.Errorf("the groups are %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err != nil {
		t.Error("what is not the host's was removed:", err)
	}
}

// TestNotDivided: if the kernel refuses, everything is unchanged.
func TestNotDivided(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := fill(dir, procsFile); err != nil { // and nothing to divide it with
		t.Fatal(err)
	}
	if _, err := divide(dir, 42, folders()); err == nil {
		t.Fatal("no error")
	}
	wantFile(t, dir, procsFile, "42")
}

func TestNoTree(t *testing.T) {
	t.Parallel()
	var none *Tree
	g, err := none.New(Limits{Memory: 1})
	if g != nil || err != nil || g.Folder() != nil || g.SetMemory(1) != nil || g.Close() != nil {
		t.Error("without a tree there is a group")
	}
	none.Close()
}

// TestHammer makes and closes groups from many goroutines.
func TestHammer(t *testing.T) {
	t.Parallel()
	tree, dir := testTree(t)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for n := range 20 {
				g, err := tree.New(Limits{Memory: int64(n), Processes: n})
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(g.SetMemory(1), g.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if left := groupsIn(t, dir); len(left) > 0 {
		t.Errorf("%d groups are left, such as %s", len(left), left[0])
	}
	if tree.last != 160 {
		t.Error("there were " + strconv.Itoa(tree.last) + " groups")
	}
}
