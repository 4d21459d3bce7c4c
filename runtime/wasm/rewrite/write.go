package rewrite

import (
	"fmt"
	"math"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/typecheck"
)

// writer writes the rewritten module. It copies no byte of code: each
// instruction was read, typed and is written again, so that the compiler sees
// what the rewrite has seen and nothing else.
type writer struct {
	*survey
	added *added
	out   module.Module // what is written
	types *typecheck.Checker
	// referred are the globals with references to functions.
	referred map[uint32]uint32
	place    placer
	// buffer holds the code of one function after the other, size its length so
	// far.
	buffer code
	size   int
}

// number assigns the indices of what is added, which follow the existing ones.
func (s *survey) number(interval int) *added {
	globals := s.globalIndex(len(s.m.Globals))
	types := uint32(len(s.m.Types))
	functions := s.index(len(s.functions))
	return &added{
		tick: globals, fuel: globals + 1, budget: globals + 2, stop: globals + 3,
		action: types, mover: types + 1, counter: types + 2,
		yield: functions, count: functions + 1, copy: functions + 2, fill: functions + 3,
		interval: int32(interval),
	}
}

// helpers are the names of the added functions in stack traces, in the order of
// their indices.
var helpers = [...]string{Prefix + "yield", Prefix + "count", Prefix + "copy", Prefix + "fill"}

// extend adds what each module gets.
func (w *writer) extend() {
	m, a := w.m, w.added
	w.out = *m
	out := &w.out
	out.Types = with(m.Types, module.FuncType{},
		module.FuncType{Params: []byte{module.I32, module.I32, module.I32}}, module.FuncType{Params: []byte{module.I32}})
	out.Functions = with(m.Functions, a.action, a.counter, a.mover, a.mover)
	if len(m.Memories)+m.Imported[module.KindMemory] == 0 {
		out.Memories = []module.Limits{{HasMax: true}} // no pages, now or later
	}
	out.Globals = with(m.Globals,
		counter(module.I32, uint64(a.interval)), counter(module.I64, uint64(a.interval)),
		counter(module.I64, math.MaxInt64), counter(module.I32, 0))
	w.refer()
	if m.Start >= 0 {
		out.Start = -1
	}
}

// with returns a slice with further entries; the original is unchanged.
func with[T any](s []T, more ...T) []T { return append(s[:len(s):len(s)], more...) }

// counter returns an added global with an initial value.
func counter(t byte, value uint64) module.Global {
	op := module.I32Const
	if t == module.I64 {
		op = module.I64Const
	}
	return module.Global{GlobalType: module.GlobalType{Type: t, Mutable: true}, Init: module.Const{Op: byte(op), Bits: value}}
}

// addExport adds an export.
func (w *writer) addExport(name string, kind byte, index uint32) {
	w.out.Exports = append(w.out.Exports[:len(w.out.Exports):len(w.out.Exports)], module.Export{Name: name, Kind: kind, Index: index})
}

// takeData leaves the active segments to the host. They are replaced by empty passive ones, so
// that the others keep their indices. Those that the code copies from keep their bytes: wazero
// 1.12 doesn't drop an active segment once it is in memory, contrary to the specification, and
// what ran before must still run.
func (w *writer) takeData() {
	if !w.segments {
		w.out.Data, w.out.DataCount = nil, -1
		return
	}
	copied := map[uint32]bool{}
	for i := range w.functions {
		for _, segment := range w.functions[i].init {
			copied[segment] = true
		}
	}
	w.out.Data = make([]module.Segment, len(w.m.Data))
	for i, d := range w.m.Data {
		w.out.Data[i].Mode = module.Passive
		if d.Mode == module.Passive || copied[uint32(i)] {
			w.out.Data[i].Init = d.Init
		}
	}
}

// module writes the module.
func (w *writer) module() ([]byte, error) {
	b, err := w.out.Encode(w.body)
	if err != nil {
		return nil, err
	}
	if names := w.names(); names != nil {
		b = module.AppendCustom(b, "name", names)
	}
	return b, nil
}

// body appends the body of a function, added ones included.
func (w *writer) body(b []byte, i int) ([]byte, error) {
	a := w.added
	if n := i - len(w.m.Bodies); n >= 0 {
		return append(b, [len(helpers)]func() code{a.yieldBody, a.countBody, a.copyBody, a.fillBody}[n]()...), nil
	}
	patches, err := w.place.place(i)
	if err != nil {
		return nil, err
	}
	f := w.function(i)
	if err := f.write(patches); err != nil {
		return nil, fmt.Errorf("function %d: %w", w.index(i), err)
	}
	if w.size += len(f.code); w.size > maxCode+2*len(w.m.Bytes) {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxCode+2*len(w.m.Bytes))
	}
	b = f.appendLocals(b)
	if b = append(b, f.code...); len(b) > maxBody {
		return nil, fmt.Errorf("%w: function %d becomes larger than %d MiB", ErrTooLarge, w.index(i), maxBody>>20)
	}
	return b, nil
}

// maxBody is how large a function may become. The largest that is accepted has
// 4 MiB; vector instructions that are written differently take more room.
const maxBody = 8 << 20

// maxCode is how much code a module may become, besides twice its size.
const maxCode = 1 << 20
