// Package cgroup puts each process that the host starts into a control group of its own (cgroup v2), which bounds the
// memory and number of all processes in it together, whatever they do to their own limits.
//
//	base                the group that the host was started in, and may divide
//	├── jobhost         the host itself: a group that is divided has no processes
//	├── jobhost-812-1   a process, with all that it starts
//	└── jobhost-812-2
//
// The host may divide its group if the group was delegated to it and contains nothing else: see [Open]. Otherwise there
// is no tree, and a nil [Tree] and [Group] do nothing.
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
	hostName = "jobhost"  // name of the host's own group
	prefix   = "jobhost-" // of the names of the groups of processes
)

// Tree is a group that the host divides. It is safe for concurrent use.
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
	remove func(dir string) error // an empty one
}

// kernel returns the real system.
func kernel() system {
	return system{make: func(dir string) error { return os.Mkdir(dir, 0o755) }, remove: os.Remove}
}

// Limits bound all processes of a group together.
type Limits struct {
	Memory    int64 // bytes, including what the kernel uses for them
	Processes int   // including threads
}

// Group is the group of a process and of everything it starts.
type Group struct {
	tree   *Tree
	path   string
	folder *os.File
}

// divide makes a tree of a group that contains only the process pid, which is moved into a group of its own.
func divide(dir string, pid int, s system) (*Tree, error) {
	t := &Tree{dir: dir, pid: pid, system: s}
	if filepath.Base(dir) == hostName {
		t.dir = filepath.Dir(dir) // another engine of this host has divided it before
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

// sweep removes what earlier hosts have left behind, if it is empty.
func (t *Tree) sweep() {
	groups, err := filepath.Glob(filepath.Join(t.dir, prefix+"*"))
	if err != nil {
		return // the only error is a bad pattern
	}
	for _, g := range groups {
		_ = t.system.remove(g) // fails if there are processes in it
	}
}

// New makes a group in which a process can be started.
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
		if err = t.system.make(path); !errors.Is(err, fs.ErrExist) { // another engine has groups of that name, too
			return path, err
		}
	}
}

// tidyLocked removes groups whose last processes have ended by now.
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

// Close removes the groups that are empty. Remaining processes keep theirs until the next host sweeps.
func (t *Tree) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tidyLocked()
}

// Folder is the descriptor with which a process is started in the group; nil = there is no group.
func (g *Group) Folder() *os.File {
	if g == nil {
		return nil
	}
	return g.folder
}

// SetMemory changes the memory limit.
func (g *Group) SetMemory(bytes int64) error {
	if g == nil {
		return nil
	}
	return write(g.path, memoryFile, bytes)
}

// Close ends what is left in the group and removes it, or leaves that to a later call on the tree if the kernel has
// not finished with its processes.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	// Kernels before 5.14 lack the file. Then what is left has to end without our help.
	if err := write(g.path, killFile, 1); errors.Is(err, fs.ErrNotExist) {
		return g.folder.Close() // already gone
	}
	err := g.folder.Close()
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	g.tree.left = append(g.tree.left, g.path)
	g.tree.tidyLocked()
	return err
}

// write writes a value to a file of a group, which exists if the kernel supports it.
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
