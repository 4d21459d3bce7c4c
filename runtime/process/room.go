package process

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/machine"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process/confine"
)

// What a sandbox process may have besides the memories of its guests.
const (
	compileBytes = 4 << 30   // while it compiles, with the usual bound on what that takes: see compileRoom
	baseBytes    = 512 << 20 // for what doesn't depend on its slots: the collector's room, threads
	stackBytes   = 512 << 20 // for the stacks of all guests, of which 64 fit
	slotBytes    = 64 << 20  // for each slot: messages, such as the body of a response
	// arenaBytes is address space that is reserved by the gigabyte, or in parts of 64 MiB, and hardly used.
	arenaBytes = 1 << 30
	// unknownBytes is the address space of a process that can't be inspected.
	unknownBytes = 16 << 30
	baseFiles    = 512
	slotFiles    = 64 // files that a guest may have open through WASI
)

// slotsOf returns how many slots a process of a plugin has initially.
func slotsOf(src *runtime.Source) int {
	processes := max(src.Processes, 1)
	return max((src.Slots+processes-1)/processes, 1)
}

// imagesOf returns how many images a process of a plugin creates, and how large one may be.
func imagesOf(src *runtime.Source) (n int, size int64) {
	return 1 + len(src.Linked), wholePages(src.Limits.OrDefaults().MemoryBytes)
}

// wholePages rounds a limit up to pages of linear memory, of which there are fewer than 65,536.
func wholePages(n int64) int64 {
	const page = 64 << 10
	return min((max(n, 1)+page-1)/page, 65_535) * page
}

// memoriesOf returns the address space of the memories of one slot: they can be a quarter larger than a job may use.
func memoriesOf(src *runtime.Source, abi string) int64 {
	n, size := imagesOf(src)
	sum := int64(n) * size
	if abi == runtime.ABIExtism {
		sum += wholePages(cmp.Or(src.Extism.MemoryBytes, size)) // of its kernel
	}
	return sum + sum/4
}

// allowance is what a sandbox process may have for its slots.
type allowance struct {
	loaded confine.Memory // what it used when the plugin was loaded
	images int64          // bytes of all
	slot   int64          // bytes of the memories of one slot
	slots  int            // for which it was given
}

func newAllowance(pid string, src *runtime.Source, abi string) *allowance {
	n, size := imagesOf(src)
	a := &allowance{images: int64(n) * size, slot: memoriesOf(src, abi)}
	var err error
	if a.loaded, err = confine.MemoryOf(pid); err != nil { // /proc may be hidden; then it uses no more than it was allowed
		a.loaded = confine.Memory{Data: compileMemory(src), AddressSpace: unknownBytes + compileMemory(src)}
	}
	return a
}

// memory is what it may have for some slots. That the limit counts reservations is deliberate: an attacker in the
// process can use all address space that it has.
func (a *allowance) memory(slots int) confine.Memory {
	more := baseBytes + stackBytes + int64(slots)*(a.slot+slotBytes)
	return confine.Memory{
		Data:         min(a.loaded.Data+more, machine.Memory()),
		AddressSpace: a.loaded.AddressSpace + more + a.images + arenaBytes,
	}
}

// fit gives a process what it needs for some slots, unless it already has that. Without an allowance its limits can't
// be raised.
func (c *child) fit(slots int) error {
	a := c.allowed
	if a == nil || slots <= a.slots {
		return nil
	}
	pid, err := strconv.Atoi(c.process.ID())
	if err != nil {
		return fmt.Errorf("find the process: %w", err)
	}
	m := a.memory(slots)
	err = errors.Join(
		confine.LimitMemory(pid, m),
		confine.LimitOpenFiles(pid, filesOf(slots)),
		c.process.group.SetMemory(min(m.Data+a.images, machine.Memory())),
	)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	a.slots = slots
	return nil
}

// filesOf is how many files a process may have open.
func filesOf(slots int) int {
	if goruntime.GOOS != "linux" {
		slots = jobhost.MaxSlots // the host could not raise it
	}
	return baseFiles + slots*slotFiles
}

// fitLocked gives the process of a place what it needs for the instances that use it.
func (s *supervisor) fitLocked(m *place) {
	if m.child == nil {
		return
	}
	if err := m.child.fit(m.slots); err != nil {
		s.engine.logger.Warn("process can't be given more memory", logkey.Worker, s.worker, "pid", m.child.process.ID(), logkey.Error, err)
	}
}

// usualCompile is the compile memory of a worker that doesn't set its own.
var usualCompile = runtime.DefaultLimits().CompileBytes

// compileMemory is what a process may use to compile a plugin: several times the estimate, since it is only an
// estimate, and a process that has too little dies.
func compileMemory(src *runtime.Source) int64 {
	return max(compileBytes, src.Limits.OrDefaults().CompileBytes*(compileBytes/usualCompile))
}

// compileRoom is what the calling process may have until its plugin is loaded.
func compileRoom(src *runtime.Source) confine.Memory {
	more := min(compileMemory(src), machine.Memory())
	now, err := confine.MemoryOf("self")
	if err != nil { // not on Linux: how much it reserves is unknown, so that isn't limited
		return confine.Memory{Data: more}
	}
	return confine.Memory{Data: now.Data + more, AddressSpace: now.AddressSpace + more + arenaBytes}
}

// maxThreads is how many threads a sandbox process may have besides one per slot, where there are control groups.
const maxThreads = 1024

// loadingMemory is how much memory all parts of a process may use together until its plugin is loaded.
func loadingMemory(src *runtime.Source) int64 {
	n, size := imagesOf(src)
	return min(baseBytes+compileMemory(src)+int64(n)*size, machine.Memory())
}

// collectEarlier makes the collector work harder before a loaded plugin has used up the room for its slots.
func collectEarlier(slots int) {
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(total)
	debug.SetMemoryLimit(int64(total[0].Value.Uint64()) + (baseBytes+stackBytes+int64(slots)*slotBytes)/4*3)
}
