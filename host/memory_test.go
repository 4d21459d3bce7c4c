package host

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime"
)

func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	worker := func(name string, mib int64, isolation runtime.Isolation) Worker {
		return Worker{Name: name, PoolSize: 4, Isolation: isolation, Limits: runtime.Limits{MemoryBytes: mib << 20}}
	}
	extism := func(w Worker, linked int) Worker {
		w.ABI, w.Linked = runtime.ABIExtism, make([]runtime.Linked, linked)
		return w
	}
	for _, c := range []struct {
		name    string
		max     int64 // MiB
		workers []Worker
		tasks   int64 // MiB; what running tasks may take
		err     string
	}{
		// Each sandbox has a stack of 24 MiB besides.
		{name: "resets", max: 124, workers: []Worker{worker("a", 64, runtime.IsolateJob), worker("b", 100, "")}, tasks: 124},
		{name: "one keeps", max: 220, workers: []Worker{worker("a", 16, runtime.IsolateInstance), worker("b", 36, "")}, tasks: 60},
		{name: "too large", max: 124, workers: []Worker{worker("a", 101, "")}, err: "worker a: a sandbox may take 131072000 bytes, its stack included"},
		{name: "too large beside others", max: 220, workers: []Worker{worker("a", 16, runtime.IsolateInstance), worker("b", 37, "")}, err: "worker b"},
		// A kernel may have as much memory as a module.
		{name: "plugin", max: 152, workers: []Worker{extism(worker("a", 64, ""), 0)}, tasks: 152},
		{name: "plugin, too large", max: 151, workers: []Worker{extism(worker("a", 64, ""), 0)}, err: "worker a"},
		{name: "plugin that keeps", max: 224, workers: []Worker{extism(worker("a", 16, runtime.IsolateInstance), 0)}, tasks: 0},
		{name: "linked plugin", max: 216, workers: []Worker{extism(worker("a", 64, ""), 1)}, tasks: 216},
		{name: "linked plugin, too large", max: 215, workers: []Worker{extism(worker("a", 64, ""), 1)}, err: "worker a"},
		{name: "too many that keep", max: 124, workers: []Worker{worker("a", 26, runtime.IsolateInstance)}, err: "isolation instance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := &sandboxes{c.max << 20, withOwn(c.workers, nil)}
			err := all.check()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v doesn't say %q", err, c.err)
				}
				return
			}
			if err != nil || all.taskMemory() != c.tasks<<20 {
				t.Errorf("%d bytes for tasks, %v", all.taskMemory(), err)
			}
			all.maxMemory = 0
			if err := all.check(); err != nil || all.taskMemory() < all.workers[0].taskMemory() {
				t.Errorf("by default: %d bytes for tasks, %v", all.taskMemory(), err)
			}
			all.maxMemory = -1
			if err := all.check(); err != nil || all.taskMemory() != 0 {
				t.Errorf("without a bound: %d bytes for tasks, %v", all.taskMemory(), err)
			}
		})
	}
	if n := machineMemory(); n < 64<<20 {
		t.Errorf("the machine has %d bytes", n)
	}
}
