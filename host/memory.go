package host

import (
	"cmp"
	"fmt"

	"github.com/jobhost/jobhost/internal/machine"
	"github.com/jobhost/jobhost/runtime"
)

// taskMemory is what a task of the worker may take beyond what its sandbox
// holds anyway. A sandbox that is put back to its beginning holds at most the 16 MiB
// that are cleared instead of given back, and is not counted while it waits; those that keep
// what they have are counted as a whole, in sandboxes.kept. The host's own workers have none.
func (w *settings) taskMemory() int64 {
	switch {
	case w.ABI == runtime.ABIProcess: // what all of its processes may take, spread over its slots
		all := w.Limits.OrDefaults().MemoryBytes * int64(max(w.Processes, 1))
		return (all + int64(w.PoolSize) - 1) / int64(max(w.PoolSize, 1))
	case w.Isolation == runtime.IsolateInstance:
		return 0
	}
	return w.sandboxMemory()
}

// sandboxMemory is what a sandbox may take while it runs: the memories of its
// modules, the one of the kernel that each Extism plugin has, and the stack of its
// calls.
func (w *settings) sandboxMemory() int64 {
	memory := w.Limits.OrDefaults().MemoryBytes
	sum := int64(1+len(w.Linked))*memory + runtime.StackBytes
	if w.ABI == runtime.ABIExtism || w.extism {
		sum += cmp.Or(w.Extism.MemoryBytes, memory)
	}
	return sum
}

// sandboxes are the workers whose sandboxes share the memory of a host.
type sandboxes struct {
	maxMemory int64 // as in [Config]
	workers   []settings
}

// sandboxes returns workers with the bound of the configuration.
func (c *Config) sandboxes(workers []settings) *sandboxes {
	return &sandboxes{c.MaxMemory, workers}
}

// kept is the memory of the sandboxes that keep what they have between jobs.
func (s *sandboxes) kept() int64 {
	var sum int64
	for i := range s.workers {
		if w := &s.workers[i]; w.Isolation == runtime.IsolateInstance && w.ABI != runtime.ABIProcess && !w.own() {
			sum += int64(w.PoolSize) * w.sandboxMemory()
		}
	}
	return sum
}

// taskMemory is what all running tasks may take together; 0 = no bound. A host
// without a bound has what the machine has, but enough for a task of each worker.
func (s *sandboxes) taskMemory() int64 {
	switch {
	case s.maxMemory < 0:
		return 0
	case s.maxMemory > 0:
		return s.maxMemory - s.kept()
	}
	left := machineMemory() - s.kept()
	for i := range s.workers {
		left = max(left, s.workers[i].taskMemory())
	}
	return left
}

// check finds workers that could never run a task.
func (s *sandboxes) check() error {
	if s.maxMemory <= 0 {
		return nil
	}
	left := s.taskMemory()
	if left < 0 {
		return fmt.Errorf("max_memory of %d bytes is less than the %d that the sandboxes of workers with isolation instance may keep", s.maxMemory, s.kept())
	}
	for i := range s.workers {
		if w := &s.workers[i]; w.taskMemory() > left {
			return fmt.Errorf("worker %s: a sandbox may take %d bytes, its stack included, the host has %d for all: lower the worker's memory or raise max_memory", w.Name, w.taskMemory(), left)
		}
	}
	return nil
}

// machineMemory returns three quarters of the memory of the machine, or of the
// control groups that the process is in, if that is less. The rest is for what
// isn't counted: payloads on their way, compiled code, the page cache of the store.
func machineMemory() int64 { return machine.Memory() / 4 * 3 }
