package rewrite

import (
	"encoding/binary"
	"math"

	"github.com/jobhost/jobhost/runtime/module"
)

// writer writes the rewritten module.
type writer struct {
	*survey
	added    *added
	exports  code // the added ones
	exported int
	dataGone bool // active data segments are left out
}

// number gives what is added its indices, which follow those that are there.
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

// helpers are the names of the added functions in stack traces, in the order
// of their indices.
var helpers = [...]string{Prefix + "yield", Prefix + "count", Prefix + "copy", Prefix + "fill"}

// addExport adds an export.
func (w *writer) addExport(name string, kind byte, index uint32) {
	w.exported++
	w.exports.sized([]byte(name))
	w.exports.op(kind)
	w.exports.u32(index)
}

// module writes the sections in their order, those that were missing included.
func (w *writer) module() ([]byte, error) {
	m, a := w.m, w.added
	functions, err := w.code()
	if err != nil {
		return nil, err
	}
	out := make(code, 0, len(module.Header)+len(m.Bytes)+len(functions)-w.size(module.SectionCode)-w.size(module.SectionData)+4096)
	out = append(out, module.Header...)

	types := code{0x60, 0, 0, 0x60, 3, module.I32, module.I32, module.I32, 0, 0x60, 1, module.I32, 0}
	w.extend(&out, module.SectionType, 3, types)
	w.keep(&out, module.SectionImport)
	var added code
	for _, t := range [...]uint32{a.action, a.counter, a.mover, a.mover} {
		added.u32(t)
	}
	w.extend(&out, module.SectionFunction, len(helpers), added)
	w.keep(&out, module.SectionTable)
	if len(m.Memories)+m.Imported[module.KindMemory] == 0 {
		w.extend(&out, module.SectionMemory, 1, code{1, 0, 0}) // no pages, now and later
	} else {
		w.keep(&out, module.SectionMemory)
	}
	w.extend(&out, module.SectionGlobal, 4, a.globals())
	w.extend(&out, module.SectionExport, w.exported, w.exports)
	w.keep(&out, module.SectionElement)
	data := w.segmentsLeft()
	if data {
		w.keep(&out, module.SectionDataCount)
	}
	out.op(module.SectionCode)
	out.sized(functions)
	if data {
		w.writeData(&out)
	}
	w.writeNames(&out)
	return out, nil
}

// globals are the entries of the added globals, with their first values.
func (a *added) globals() code {
	var c code
	c.op(module.I32, 1)
	c.i32(a.interval)
	c.end()
	c.op(module.I64, 1)
	c.i64(int64(a.interval))
	c.end()
	c.op(module.I64, 1)
	c.i64(math.MaxInt64)
	c.end()
	c.op(module.I32, 1)
	c.i32(0)
	c.end()
	return c
}

// section returns a section that is no custom one.
func (w *writer) section(id byte) (s module.Section, ok bool) {
	for _, s := range w.m.Sections {
		if s.ID == id {
			return s, true
		}
	}
	return module.Section{}, false
}

// size returns how many bytes the content of a section has.
func (w *writer) size(id byte) int {
	s, _ := w.section(id)
	return s.End - s.Start
}

// keep writes a section as it was, unless there was none or it was empty.
func (w *writer) keep(out *code, id byte) {
	if s, ok := w.section(id); ok {
		out.op(id)
		out.sized(w.m.Bytes[s.Start:s.End])
	}
}

// extend writes a section with further entries, or makes it.
func (w *writer) extend(out *code, id byte, n int, entries code) {
	var before []byte
	count := uint32(n)
	if s, ok := w.section(id); ok {
		there, size := binary.Uvarint(w.m.Bytes[s.Start:s.End])
		before = w.m.Bytes[s.Start+size : s.End]
		count += uint32(there)
	}
	content := make(code, 0, len(before)+len(entries)+5)
	content.u32(count)
	content = append(append(content, before...), entries...)
	out.op(id)
	out.sized(content)
}

// segmentsLeft reports whether the module still has a data section.
func (w *writer) segmentsLeft() bool { return !w.dataGone || w.segments }

// writeData writes the data section. Segments that were taken out leave an
// empty passive one, so that the others keep their indices. Those that the code
// copies from keep their bytes: wazero 1.12 doesn't drop an active segment once
// it is in memory, as the specification says, and what ran before must still.
func (w *writer) writeData(out *code) {
	if !w.dataGone {
		w.keep(out, module.SectionData)
		return
	}
	copied := map[uint32]bool{}
	for i := range w.functions {
		for _, segment := range w.functions[i].init {
			copied[segment] = true
		}
	}
	var content code
	content.u32(uint32(len(w.m.Data)))
	for i, d := range w.m.Data {
		content.op(module.Passive)
		if d.Mode == module.Passive || copied[uint32(i)] {
			content.sized(d.Init)
		} else {
			content.u32(0)
		}
	}
	out.op(module.SectionData)
	out.sized(content)
}

// code writes the content of the code section.
func (w *writer) code() (code, error) {
	size := w.size(module.SectionCode)
	out := make(code, 0, size+size/4+1024)
	out.u32(uint32(len(w.m.Bodies) + len(helpers)))
	place := placer{survey: w.survey}
	var body code
	for i, b := range w.m.Bodies {
		patches, err := place.place(i)
		if err != nil {
			return nil, err
		}
		if len(patches) == 0 {
			out.sized(w.m.Bytes[b.Start:b.End])
			continue
		}
		body = w.patch(body[:0], i, patches)
		out.sized(body)
	}
	a := w.added
	for _, body := range [len(helpers)]code{a.yieldBody(), a.countBody(), a.copyBody(), a.fillBody()} {
		out.sized(body)
	}
	return out, nil
}

// patch writes the body of a function with its patches.
func (w *writer) patch(out code, i int, patches []patch) code {
	b := w.m.Bodies[i]
	_, size := binary.Uvarint(w.m.Bytes[b.Start:b.Code])
	groups := w.m.Bytes[b.Start+size : b.Code]
	var scratch uint32
	if w.functions[i].scratch {
		out.u32(uint32(b.Groups + 1))
		out = append(out, groups...)
		out.op(1, module.I32)
		scratch = uint32(len(w.m.Types[w.m.Functions[i]].Params) + b.Locals)
	} else {
		out.u32(uint32(b.Groups))
		out = append(out, groups...)
	}
	at := b.Code
	for _, p := range patches {
		out = append(out, w.m.Bytes[at:p.at]...)
		at = int(p.at)
		if p.weight > 0 {
			w.added.appendTick(&out, p.weight, p.calling)
			continue
		}
		w.added.appendBulk(&out, p, w.m.Bytes[p.at:p.end], scratch)
		at = int(p.end)
	}
	return append(out, w.m.Bytes[at:b.End]...)
}
