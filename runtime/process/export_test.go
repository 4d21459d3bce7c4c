package process

// WithoutSpace makes guards do without a number space of their own, as where that isn't allowed.
func (n *Natives) WithoutSpace() { n.space = func() bool { return false } }

// Pids returns the processes of a plugin.
func Pids(plugin any) (pids []int) {
	var c *crew
	switch p := plugin.(type) {
	case *native:
		c = p.crew
	case *sandboxed:
		c = p.crew
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.child != nil {
			pids = append(pids, m.child.process.cmd.Process.Pid)
		}
	}
	return pids
}
