package rig_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// The entries that a harness adds besides those that call the module's functions:
// they return its memory, and its globals with what can be seen of its tables.
const (
	lookAtMemory  = "rig memory"
	lookAtGlobals = "rig globals"
)

// mostCalls is how many functions of a module a harness calls.
const mostCalls = 6

var errNoHarness = errors.New("its exports leave no room for a harness")

// harness adds entries of the native ABI to a module, which call the functions
// that it exports and show what it keeps. All else stays byte for byte what it is.
func harness(m *module.Module) ([]byte, error) {
	h := &addition{m: m, sections: map[byte][]string{}}
	if len(m.Imports) > m.Imported[module.KindFunction] {
		return nil, errNoHarness // it has a memory or globals of others
	}
	h.sections[module.SectionType] = []string{"\x60\x01\x7f\x01\x7e"}
	if len(m.Memories) == 0 {
		h.sections[module.SectionMemory] = []string{"\x00\x01"}
	}
	if i := slices.IndexFunc(m.Exports, func(e module.Export) bool { return e.Name == "memory" }); i < 0 {
		h.export("memory", module.KindMemory, 0)
	} else if m.Exports[i].Kind != module.KindMemory {
		return nil, errNoHarness
	}
	calls := 0
	for _, e := range m.Exports {
		t, ok := m.FunctionType(e.Index)
		own := string(t.Params) == "\x7f" && string(t.Results) == "\x7e" // an entry already
		if e.Kind != module.KindFunction || !ok || own || e.Name == "_initialize" || calls == mostCalls {
			continue
		}
		h.function("rig "+strconv.Itoa(calls), h.call(e.Index, t))
		calls++
	}
	h.function(lookAtMemory, "\x3f\x00\xad\x42\x10\x86") // memory.size, i64.extend_i32_u, 16, i64.shl
	h.function(lookAtGlobals, h.globals())
	return h.bytes(), nil
}

// addition is what is added to a module: entries by the number of the section.
type addition struct {
	m        *module.Module
	sections map[byte][]string
}

func (h *addition) add(section byte, entry string) {
	h.sections[section] = append(h.sections[section], entry)
}

func (h *addition) export(name string, kind byte, index int) {
	h.add(module.SectionExport, string(module.AppendSized(nil, []byte(name)))+string(kind)+number32(index))
}

// function adds an entry, which takes the length of the input.
func (h *addition) function(name, code string) {
	index := h.m.Imported[module.KindFunction] + len(h.m.Functions) + len(h.sections[module.SectionFunction])
	h.add(module.SectionFunction, number32(len(h.m.Types)))
	h.add(module.SectionCode, string(module.AppendSized(nil, []byte("\x00"+code+"\x0b"))))
	h.export(name, module.KindFunction, index)
}

// call calls a function with what can be made of the length of the input, and
// returns nothing.
func (h *addition) call(index uint32, t module.FuncType) string {
	code := ""
	for _, e := range h.m.Exports {
		if e.Name == rig.Fuel && e.Kind == module.KindGlobal && h.m.Globals[e.Index].GlobalType == (module.GlobalType{Type: module.I32, Mutable: true}) {
			code = "\x41\x96\x01\x24" + number32(int(e.Index)) // 150
		}
	}
	for _, p := range t.Params {
		code += map[byte]string{
			module.I32: "\x20\x00", module.I64: "\x20\x00\xad", module.F32: "\x20\x00\xb2", module.F64: "\x20\x00\xb7",
			module.V128: "\x20\x00\xfd\x0f", module.FuncRef: "\xd0\x70", module.ExternRef: "\xd0\x6f",
		}[p]
	}
	code += "\x10" + number32(int(index))
	for range t.Results {
		code += "\x1a"
	}
	return code + "\x42\x00"
}

// mostShown bounds the globals, and the entries of each table, that are shown.
const mostShown = 1000

// globals writes the mutable globals to memory and returns the place.
func (h *addition) globals() string {
	code, at := "", 0
	if len(h.m.Memories) > 0 && h.m.Memories[0].Min == 0 {
		code = "\x3f\x00\x45\x04\x40\x41\x01\x40\x00\x1a\x0b" // if memory.size = 0 { memory.grow 1 }
	}
	show := func(value, store string) {
		code += "\x41" + string(module.AppendS64(nil, int64(at))) + value + store
		at += 16
	}
	for i, g := range h.m.Globals[:min(len(h.m.Globals), mostShown)] {
		if g.Mutable {
			show("\x23"+number32(i), map[byte]string{
				module.I32: "\x36\x02\x00", module.I64: "\x37\x03\x00", module.F32: "\x38\x02\x00", module.F64: "\x39\x03\x00",
				module.V128: "\xfd\x0b\x04\x00", module.FuncRef: "\xd1\x36\x02\x00", module.ExternRef: "\xd1\x36\x02\x00",
			}[g.Type])
		}
	}
	for i, t := range h.m.Tables[:min(len(h.m.Tables), 4)] {
		show("\xfc\x10"+number32(i), "\x36\x02\x00") // table.size
		for entry := range min(int(t.Min), 16) {
			show("\x41"+string(module.AppendS64(nil, int64(entry)))+"\x25"+number32(i), "\xd1\x36\x02\x00")
		}
	}
	return code + "\x42" + string(module.AppendS64(nil, int64(at)))
}

// bytes returns the module with the entries.
func (h *addition) bytes() []byte {
	order := []byte{
		module.SectionType, module.SectionImport, module.SectionFunction, module.SectionTable, module.SectionMemory,
		module.SectionGlobal, module.SectionExport, module.SectionStart, module.SectionElement, module.SectionDataCount,
		module.SectionCode, module.SectionData,
	}
	out, next := []byte(module.Header), 0
	missing := func(until int) { // sections that the module doesn't have, before one that it has
		for ; next < until; next++ {
			out = h.section(out, order[next], 0, nil)
		}
	}
	for _, s := range h.m.Sections {
		if s.ID == module.SectionCustom {
			out = append(out, h.m.Bytes[s.Header:s.End]...)
			continue
		}
		missing(slices.Index(order, s.ID))
		next++
		if len(h.sections[s.ID]) == 0 {
			out = append(out, h.m.Bytes[s.Header:s.End]...)
			continue
		}
		count, n := binary.Uvarint(h.m.Bytes[s.Start:s.End])
		out = h.section(out, s.ID, int(count), h.m.Bytes[s.Start+n:s.End])
	}
	missing(len(order))
	return out
}

// section appends a section that has entries already, unless there are none.
func (h *addition) section(out []byte, id byte, count int, entries []byte) []byte {
	added := h.sections[id]
	if len(added) == 0 {
		return out
	}
	content := append(module.AppendU32(nil, uint32(count+len(added))), entries...)
	for _, entry := range added {
		content = append(content, entry...)
	}
	return module.AppendSized(append(out, id), content)
}

func number32(n int) string { return string(module.AppendU32(nil, uint32(n))) }
