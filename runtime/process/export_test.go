package process

import (
	"os"
	goruntime "runtime"
)

// WithoutSpace makes guards do without a number space of their own, as where that isn't allowed.
func (n *Natives) WithoutSpace() { n.space = func() bool { return false } }

// Pids returns the processes of a plugin.
func Pids(plugin any) (pids []int) {
	var c *supervisor
	switch p := plugin.(type) {
	case *native:
		c = p.supervisor
	case *sandboxed:
		c = p.supervisor
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.places {
		if m.child != nil {
			pids = append(pids, m.child.process.cmd.Process.Pid)
		}
	}
	return pids
}

// Leftovers are what there is of processes.
type Leftovers struct{ Goroutines, Descriptors, Sockets int }

// Left counts what there is in this process, and in the folder of sockets of a plugin's engine.
func Left(plugin any) Leftovers {
	fds, _ := os.ReadDir("/proc/self/fd")
	sockets, _ := os.ReadDir(plugin.(*sandboxed).engine.sockets.dir)
	return Leftovers{goruntime.NumGoroutine(), len(fds), len(sockets)}
}
