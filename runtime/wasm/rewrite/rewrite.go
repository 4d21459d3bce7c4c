package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/typecheck"
)

// Prefix begins the names of all exports that the rewrite adds. Modules with
// such an export of their own are rejected.
const Prefix = "jobhost:"

// The exports of each rewritten module, which are mutable globals.
const (
	// Tick is an i32: how much may still run before the guest yields.
	Tick = Prefix + "tick"
	// Fuel is an i64: the fuel handed out so far, including what is left of Tick.
	Fuel = Prefix + "fuel"
	// Budget is an i64: how much fuel may be used.
	Budget = Prefix + "budget"
	// Stop is an i32: any value but 0 makes the guest trap at its next yield.
	// It may be set while the guest runs, from another goroutine.
	Stop = Prefix + "stop"
)

// start is the name under which the start function is exported.
const start = Prefix + "start"

// What ticks stand for. One unit of fuel is a pass through grain bytes of code,
// or a memory access; see the doc comment of the package for the consequences
// of these numbers.
const (
	grainShift = 8
	grain      = 1 << grainShift
	// tail is how much code may run after a call within a recursion without
	// another tick, in each activation that is on the stack.
	tail = 32
	// hostCost is the cost of a host call besides its bytes, in bytes of code, and
	// hostAccesses in accesses: an Extism kernel, which to a guest is just code,
	// touches memory for it. bulkCost is the cost of a bulk operation of at most
	// smallBytes or smallEntries, and bulkAccesses that of the pages that one
	// touches.
	hostCost     = 16
	hostAccesses = 1
	bulkCost     = 64
	bulkAccesses = 4
	smallBytes   = 4096
	smallShift   = 6
	// smallEntries of a table take as much memory as smallBytes.
	smallEntries = smallBytes >> entryShift
	// entryShift: wazero's tables take 8 bytes per entry.
	entryShift = 3
	// largeShift determines the cost of larger operations: a unit for each 256
	// bytes, or table entries.
	largeShift = 8
	// piece is how many bytes are copied or filled before the guest may yield.
	piece = 1 << 20
)

// DefaultInterval is the fuel between two yields.
const DefaultInterval = 16384

// maxInterval is what a tick can hold with any weight.
const maxInterval = 1 << 24

// Options say how a module is rewritten. The zero value is valid.
type Options struct {
	// Interval is the fuel between two yields, 1 to 16,777,216; 0 = [DefaultInterval].
	Interval int
	// Linked are the names of the plugin's modules that others may import from,
	// if it has more than one.
	Linked []string
	// KeepData leaves the data segments in the module.
	KeepData bool
	// Once are the exported functions that the host calls at most once, before
	// it takes the snapshot that instances are copied from and reset to. What
	// only they do needs no undoing, but if it goes beyond memory and globals,
	// copies lack it. The start function is always one of them.
	Once []string
}

// Result is a module after the rewrite, and what its host must know.
type Result struct {
	Module []byte
	// Globals are the globals that the guest may change, for snapshot and
	// reset, by their index. They are numbers of at most 64 bits.
	Globals []Global
	// Data are the data segments that were taken out, in the order in which
	// they must be written to the memory of a fresh instance before anything
	// runs. If one doesn't fit, the module can't be instantiated.
	Data []Data
	// Start is the exported name of the start function, or "". The host calls it
	// once, after Data and before everything else.
	Start string
	// Unrestorable says why an instance can't be copied or reset by its memory
	// and Globals, or "".
	Unrestorable string
	// Interval is that of the options, or the default.
	Interval int
}

// Global is a mutable global of the guest.
type Global struct {
	Export string
	Type   byte // as in package module
}

// Data is a segment of data. Bytes is a view of the original module.
type Data struct {
	Offset uint32
	Bytes  []byte
}

// Used returns the exact fuel that was used, from the values of [Fuel] and
// [Tick].
func Used(fuel int64, tick int32) int64 { return fuel - int64(tick) }

// Allot returns what to set [Tick], [Fuel] and [Budget] to before a run that
// may use budget units of fuel; 0 or less = unlimited.
func (r *Result) Allot(budget int64) (tick int32, fuel, most int64) {
	if budget <= 0 {
		budget = unlimited
	}
	tick = int32(min(budget, int64(r.Interval)))
	return tick, int64(tick), budget
}

const unlimited = 1<<63 - 1

// ErrName is returned for modules with an export that begins with [Prefix].
var ErrName = errors.New("an export begins with " + Prefix + ", which is reserved")

// ErrTooLarge is returned for modules that become too large.
var ErrTooLarge = errors.New("it becomes too large with all vector instructions written in other ways")

// Rewrite returns a module that does what m does and can be stopped, counted
// and reset. It also checks m: type errors are returned. Modules that import a
// memory, tables or mutable globals should be rejected before, because others
// may change these.
func Rewrite(m *module.Module, o Options) (*Result, error) {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Interval < 1 || o.Interval > maxInterval {
		return nil, fmt.Errorf("an interval of %d is not between 1 and %d", o.Interval, maxInterval)
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, Prefix) {
			return nil, ErrName
		}
	}
	types, err := typecheck.New(m)
	if err != nil {
		return nil, err
	}
	s, err := look(m)
	if err != nil {
		return nil, err
	}
	s.foreign, s.linked = foreignFunctions(m, o.Linked), len(o.Linked) > 0
	s.judge()
	s.findRecursion()

	r := &Result{Interval: o.Interval, Unrestorable: s.unrestorable(o.Once)}
	w := &writer{survey: s, added: s.number(o.Interval), types: types, place: placer{survey: s}}
	w.extend()
	if !o.KeepData {
		var gone bool
		if r.Data, gone = s.data(); gone {
			w.takeData()
		}
	}
	w.addExports(r)
	if r.Module, err = w.module(); err != nil {
		return nil, err
	}
	return r, nil
}

// addExports adds the exports, including those that the result names.
func (w *writer) addExports(r *Result) {
	w.addExport(Tick, module.KindGlobal, w.added.tick)
	w.addExport(Fuel, module.KindGlobal, w.added.fuel)
	w.addExport(Budget, module.KindGlobal, w.added.budget)
	w.addExport(Stop, module.KindGlobal, w.added.stop)
	for i, g := range w.m.Globals {
		if index := w.globalIndex(i); g.Mutable && w.written[index] && isNumber(g.Type) {
			name := Prefix + "global:" + strconv.Itoa(int(index))
			w.addExport(name, module.KindGlobal, index)
			r.Globals = append(r.Globals, Global{Export: name, Type: g.Type})
		}
	}
	if w.m.Start >= 0 {
		r.Start = start
		w.addExport(start, module.KindFunction, uint32(w.m.Start))
	}
}
