package rig

import (
	"strconv"

	"github.com/jobhost/jobhost/runtime/module"
)

// Fuel is the name of the global, an i32, that makes programs end. It must be
// set before each call.
const Fuel = "fuel"

const (
	fuelGlobal = 0
	pages      = 2
	morePages  = 2 // by which memory may grow
	entries    = 12
)

// outline generates the whole module except the bodies of its functions.
func (g *generator) outline() {
	m := g.m
	for range 1 + g.IntN(g.Functions) {
		index := g.typeIndex(g.typeList(4), g.typeList(3))
		m.Functions = append(m.Functions, uint32(index))
	}
	m.Memories = []module.Limits{{Min: pages, Max: pages + morePages, HasMax: true}}
	m.Globals = []module.Global{{GlobalType: module.GlobalType{Type: module.I32, Mutable: true}, Init: module.Const{Op: byte(module.I32Const)}}}
	for _, t := range g.Types {
		for _, mutable := range []bool{true, true, false} {
			m.Globals = append(m.Globals, module.Global{GlobalType: module.GlobalType{Type: t, Mutable: mutable}, Init: g.initial(t)})
		}
	}
	m.Tables = []module.Table{{Type: module.FuncRef, Limits: module.Limits{Min: entries, Max: entries + 3, HasMax: true}}}
	if g.has(module.ExternRef) {
		m.Tables = append(m.Tables, module.Table{Type: module.ExternRef, Limits: module.Limits{Min: entries}})
	}
	g.segments()
	export := func(name string, kind byte, index int) {
		m.Exports = append(m.Exports, module.Export{Name: name, Kind: kind, Index: uint32(index)})
	}
	for i := range m.Functions {
		export("f"+strconv.Itoa(i), module.KindFunction, i)
	}
	export(Fuel, module.KindGlobal, fuelGlobal)
	for i := 1; i < len(m.Globals); i++ {
		export("g"+strconv.Itoa(i), module.KindGlobal, i)
	}
	export("memory", module.KindMemory, 0)
}

// segments generates two segments each of elements and of data, the second one passive.
func (g *generator) segments() {
	m := g.m
	var functions []uint32
	for i := range min(len(m.Functions), entries-2) {
		functions = append(functions, uint32(i))
	}
	zero := module.Const{Op: byte(module.I32Const)}
	m.Elements = []module.Element{
		{Mode: module.Active, Offset: zero, Type: module.FuncRef, Functions: functions},
		{Mode: module.Passive, Type: module.FuncRef, Exprs: []module.Const{
			{Op: byte(module.RefFunc)}, {Op: byte(module.RefNull), Bits: uint64(module.FuncRef)}, {Op: byte(module.RefFunc)},
		}},
	}
	for _, mode := range []byte{module.Active, module.Passive} {
		init := make([]byte, 64+g.IntN(192))
		for i := range init {
			init[i] = byte(g.Uint32())
		}
		offset := module.Const{Op: byte(module.I32Const), Bits: uint64(g.IntN(300))}
		m.Data = append(m.Data, module.Segment{Mode: mode, Offset: offset, Init: init})
	}
	m.DataCount = len(m.Data)
}

// initial returns the initial value of a global.
func (g *generator) initial(t byte) module.Const {
	switch t {
	case module.I32:
		return module.Const{Op: byte(module.I32Const), Bits: uint64(int64(g.int32()))}
	case module.I64:
		return module.Const{Op: byte(module.I64Const), Bits: g.int64()}
	case module.F32:
		return module.Const{Op: byte(f32Const), Bits: uint64(g.float32())}
	case module.F64:
		return module.Const{Op: byte(f64Const), Bits: g.float64()}
	case module.V128:
		at := len(g.m.Bytes) // from where the encoder takes them
		g.m.Bytes = append(g.m.Bytes, g.vector()...)
		return module.Const{Op: byte(vectorConst >> 8), Bits: uint64(at)}
	case module.FuncRef:
		return module.Const{Op: byte(module.RefFunc), Bits: uint64(g.IntN(len(g.m.Functions)))}
	}
	return module.Const{Op: byte(module.RefNull), Bits: uint64(t)}
}

// body generates the locals and instructions of a function.
func (g *generator) body(f int) []byte {
	t := g.m.Types[g.m.Functions[f]]
	g.code, g.labels, g.room, g.depth, g.straight = nil, []label{{types: t.Results}}, g.Room, 0, false
	g.locals = append([]byte(nil), t.Params...)
	for range 1 + g.IntN(3) {
		g.locals = append(g.locals, g.Types...)
	}
	g.own = len(g.locals)
	g.burn()
	if len(g.Kept) > 0 && g.chance(2) { // values stay in registers as long as there is no call
		g.statements()
		g.keep()
	} else {
		kept := g.keep()
		g.room = g.Room
		g.statements()
		g.show(kept)
	}
	g.tail()
	for _, result := range t.Results {
		g.expr(result)
	}
	g.code = append(g.code, byte(module.End))
	own := g.locals[len(t.Params):]
	body := module.AppendU32(nil, uint32(len(own)))
	for _, t := range own {
		body = append(module.AppendU32(body, 1), t)
	}
	return append(body, g.code...)
}

func (g *generator) statements() {
	for range 2 + g.IntN(8) {
		g.statement()
	}
}

// burn uses fuel, and traps when there is none left.
func (g *generator) burn() {
	g.at(module.GlobalGet, fuelGlobal)
	g.op(i32Eqz)
	g.open(module.If, nil, nil)
	g.op(module.Unreachable)
	g.close()
	g.at(module.GlobalGet, fuelGlobal)
	g.i32(1)
	g.op(i32Sub)
	g.at(module.GlobalSet, fuelGlobal)
}
