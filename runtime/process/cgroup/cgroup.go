// Package cgroup puts each process that the host starts into a control group of its own (cgroup v2), which bounds the
// memory and the number of all processes in it together, whatever they do to their own limits.
//
//	base                the group that the host was started in, and may divide
//	├── jobhost         the host itself: a group that is divided has no processes
//	├── jobhost-812-1   a process, with all that it starts
//	└── jobhost-812-2
//
// The host may divide its group if that was delegated to it and nothing else is in it: see [Open]. Elsewhere there is no
// tree, and a nil [Tree] and [Group] do nothing.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// The files of a group.
const (
	procsFile       = "cgroup.procs"
	killFile        = "cgroup.kill"
	controllersFile = "cgroup.controllers"
	divisionFile    = "cgroup.subtree_control"
	memoryFile      = "memory.max"
	togetherFile    = "memory.oom.group"
	processesFile   = "pids.max"
)

const (
	hostName = "jobhost"  // of the host's own group
	prefix   = "jobhost-" // of those of processes
)

// Tree is a group that the host divides. It is safe for many goroutines.
type Tree struct {
	dir    string
	pid    int
	system system

	mu   sync.Mutex // protects the rest
	last int        // number of the newest group
	left []string   // groups that could not be removed yet
}

// system makes and removes groups.
type system struct {
	make   func(dir string) error
	remove func(dir string) error // one that is empty
}

// kernel is the real one.
func kernel() system {
	return system{make: func(dir string) error { return os.Mkdir(dir, 0o755) }, remove: os.Remove}
}

// Limits bound all processes of a group together.
type Limits struct {
	Memory    int64 // bytes, with what the kernel has for them
	Processes int   // and threads
}

// Group is that of a process, and of what it starts.
type Group struct {
	tree   *Tree
	path   string
	folder *os.File
}

// divide makes a tree of a group in which there is nothing but the process pid, which goes into a group of its own.
func divide(dir string, pid int, s system) (*Tree, error) {
	t := &Tree{dir: dir, pid: pid, system: s}
	if filepath.Base(dir) == hostName {
		t.dir = filepath.Dir(dir) // another engine of this host was here before
		t.sweep()
		return t, nil
	}
	own := filepath.Join(dir, hostName)
	if err := s.make(own); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a group for the host: %w", err)
	}
	if err := write(own, procsFile, pid); err != nil {
		return nil, errors.Join(fmt.Errorf("move the host to a group of its own: %w", err), s.remove(own))
	}
	if err := write(dir, divisionFile, "+memory +pids"); err != nil {
		return nil, errors.Join(fmt.Errorf("divide the group: %w", err), write(dir, procsFile, pid), s.remove(own))
	}
	t.sweep()
	return t, nil
}

// sweep removes what hosts before this one have left, if it is empty.
func (t *Tree) sweep() {
	groups, err := filepath.Glob(filepath.Join(t.dir, prefix+"*"))
	if err != nil {
		return // only a bad pattern is an error
	}
	for _, g := range groups {
		_ = t.system.remove(g) // one in which there are processes can't be removed
	}
}

// New makes a group for a process to be started in.
func (t *Tree) New(l Limits) (*Group, error) {
	if t == nil {
		return nil, nil
	}
	path, err := t.make()
	if err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	g := &Group{tree: t, path: path}
	err = errors.Join(g.SetMemory(l.Memory), write(path, togetherFile, 1), write(path, processesFile, l.Processes))
	if err == nil {
		g.folder, err = os.Open(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("limit a control group: %w", err), t.system.remove(path))
	}
	return g, nil
}

func (t *Tree) make() (path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tidyLocked()
	for {
		t.last++
		path = filepath.Join(t.dir, prefix+strconv.Itoa(t.pid)+"-"+strconv.Itoa(t.last))
		if err = t.system.make(path); !errors.Is(err, fs.ErrExist) { // another engine has such, too
			return path, err
		}
	}
}

// tidyLocked removes groups whose last processes have ended meanwhile.
func (t *Tree) tidyLocked() {
	var left []string
	for _, path := range t.left {
		if err := t.system.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, path)
		}
	}
	t.left = left
}

// Dir returns the folder of the group that is divided.
func (t *Tree) Dir() string { return t.dir }

// Close removes the groups that are empty. Processes that are left keep theirs until the next host sweeps.
func (t *Tree) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tidyLocked()
}

// Folder is what a process is started in by its descriptor; nil = there is no group.
func (g *Group) Folder() *os.File {
	if g == nil {
		return nil
	}
	return g.folder
}

// SetMemory changes the limit of memory.
func (g *Group) SetMemory(bytes int64) error {
	if g == nil {
		return nil
	}
	return write(g.path, memoryFile, bytes)
}

// Close ends what is left in the group and removes it, or leaves that to a later call of the tree if the kernel is not
// done with its processes.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	// Kernels before 5.14 lack the file. Then what is left has to end by itself.
	if err := write(g.path, killFile, 1); errors.Is(err, fs.ErrNotExist) {
		return g.folder.Close() // it is gone already
	}
	err := g.folder.Close()
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	g.tree.left = append(g.tree.left, g.path)
	g.tree.tidyLocked()
	return err
}

// write writes a value to a file of a group, which is there if the kernel has it.
func write(dir, file string, value any) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(f, value)
	return errors.Join(err, f.Close())
}

// read reads a file of a group.
func read(dir, file string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	return strings.TrimSpace(string(data)), err
}
