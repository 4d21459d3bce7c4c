package rewrite_test

import (
	"bytes"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/runtime/module"
)

// generator writes well-typed modules at random. Global 0 is fuel of their
// own, which loops and calls use, so that they end.
type generator struct {
	t         *rapid.T
	functions int
	room      int // how many more instructions the function may get
	labels    int // blocks around the place, the function left out
}

const (
	ownFuel     = 200
	ownLocals   = 3
	smallPages  = 1
	largePages  = 40
	tableLength = 12
)

func (g *generator) n(most int) int { return rapid.IntRange(0, most-1).Draw(g.t, "choice") }

// generate is a generator of modules.
func generate(t *rapid.T) []byte {
	g := &generator{t: t, functions: 1 + rapid.IntRange(0, 4).Draw(t, "functions")}
	a := &assembly{globals: []byte{module.I32, module.I32, module.I64, module.F64}, pages: smallPages, table: tableLength, start: -1}
	if g.n(3) == 0 {
		a.pages = largePages
	}
	a.most = a.pages + 2
	a.data = [][]byte{[]byte("first"), bytes.Repeat([]byte("second "), 1000), []byte("third")}
	a.offsets = []int{16, -1, 18}
	// The entry sets the fuel, once only since it may be called by the others
	// too: endless recursion overflows the stack earlier with larger frames.
	entry := concat([]byte{byte(module.GlobalGet), 0, 0x45, byte(module.If), 0x40}, i32(ownFuel),
		[]byte{byte(module.GlobalSet), 0, byte(module.End), byte(module.LocalGet), 0, byte(module.LocalGet), 1, byte(module.Call), 1})
	a.functions = []routine{{kind: binary2, code: entry}}
	for range g.functions {
		g.room = 60
		code := g.burn()
		for range 1 + g.n(5) {
			code = append(code, g.statement()...)
		}
		a.functions = append(a.functions, routine{kind: binary2, locals: ownLocals, code: append(code, g.value()...)})
	}
	return a.bytes()
}

// burn uses own fuel, and traps when there is none.
func (g *generator) burn() []byte {
	return concat([]byte{byte(module.GlobalGet), 0}, i32(1), []byte{
		0x6b, byte(module.GlobalSet), 0, byte(module.GlobalGet), 0, byte(module.I32Const), 0, 0x4c,
		byte(module.If), 0x40, byte(module.Unreachable), byte(module.End),
	})
}

func (g *generator) local() byte { return byte(g.n(ownLocals + 2)) }

// nested returns some statements inside of a block.
func (g *generator) nested() []byte {
	g.labels++
	defer func() { g.labels-- }()
	var code []byte
	for range g.n(4) {
		code = append(code, g.statement()...)
	}
	return code
}

// statement returns instructions that leave the stack as it was.
func (g *generator) statement() []byte {
	g.room--
	if g.room < 0 {
		return []byte{0x01}
	}
	end := []byte{byte(module.End)}
	switch g.n(16) {
	case 0, 1:
		return concat(g.value(), []byte{byte(module.LocalSet), g.local()})
	case 2:
		return concat(g.value(), []byte{byte(module.GlobalSet), 1})
	case 3:
		return concat([]byte{byte(module.GlobalGet), 2}, g.value(), []byte{0xac, 0x7c, byte(module.GlobalSet), 2})
	case 4:
		return concat(g.value(), g.value(), []byte{0x36, 2}, uleb(g.n(70000))) // i32.store
	case 5:
		return concat(g.value(), []byte{byte(module.If), 0x40}, g.nested(), []byte{byte(module.Else)}, g.nested(), end)
	case 6:
		return concat(g.value(), []byte{byte(module.If), 0x40}, g.nested(), end)
	case 7, 8:
		body := g.nested()
		g.labels++
		again := g.value()
		g.labels--
		return concat([]byte{byte(module.Loop), 0x40}, g.burn(), body, again, []byte{byte(module.BrIf), 0}, end)
	case 9:
		return concat([]byte{byte(module.Block), 0x40}, g.nested(), end)
	case 10:
		if g.labels == 0 {
			return nil
		}
		return concat(g.value(), []byte{byte(module.BrIf), byte(g.n(g.labels))})
	case 11:
		return g.switching()
	case 12, 13:
		return g.bulk()
	case 14:
		return concat(g.value(), []byte{0x1a})
	default:
		return g.leaving()
	}
}

// leaving returns, branches, or traps, on a condition, with dead code behind.
func (g *generator) leaving() []byte {
	dead := concat(g.value(), []byte{0x1a})
	var leave []byte
	switch g.n(3) {
	case 0:
		leave = concat(g.value(), []byte{byte(module.Return)})
	case 1:
		leave = []byte{byte(module.Br), 0}
	default:
		leave = []byte{byte(module.Unreachable)}
	}
	return concat(g.value(), []byte{byte(module.If), 0x40}, leave, dead, g.bulk(), []byte{byte(module.End)})
}

// switching is a br_table to blocks around it; the loop among them ends by own fuel.
func (g *generator) switching() []byte {
	kind := byte(module.Block)
	var burn []byte
	if g.n(2) == 0 {
		kind, burn = byte(module.Loop), g.burn()
	}
	index := g.value()
	g.labels++
	defer func() { g.labels-- }()
	depths := []byte{2, byte(g.n(2)), byte(g.n(2)), byte(g.n(2))}
	return concat([]byte{kind, 0x40}, burn, []byte{byte(module.Block), 0x40}, index,
		[]byte{byte(module.BrTable)}, depths, []byte{byte(module.End)}, g.statement(), []byte{byte(module.End)})
}

// bulk is an operation on memory or tables, often out of bounds.
func (g *generator) bulk() []byte {
	size := func() []byte {
		if g.n(3) == 0 {
			return i32(int32(g.n(9000)))
		}
		return concat(i32(int32(g.n(3<<20))), g.value(), []byte{byte(module.I32Const), 1, 0x71, 0x6c}) // times 0 or 1
	}
	place := func(most int) []byte { return i32(int32(g.n(most))) }
	switch g.n(8) {
	case 0, 1, 2:
		return concat(place(80000), place(80000), size(), []byte{0xfc, 0x0a, 0, 0}) // memory.copy
	case 3, 4:
		return concat(place(80000), g.value(), size(), []byte{0xfc, 0x0b, 0}) // memory.fill
	case 5:
		return concat(place(80000), place(10), place(8000), []byte{0x6a}, i32(-5), []byte{0x6a}, size(), []byte{0xfc, 0x08, byte(g.n(3)), 0})
	case 6:
		return concat(place(13), place(13), place(4), []byte{0xfc, 0x0e, 0, 0}) // table.copy
	default:
		return concat(place(13), []byte{byte(module.RefFunc), byte(g.n(g.functions + 1))}, place(4), []byte{0xfc, 0x11, 0})
	}
}

// value returns instructions that leave an i32.
func (g *generator) value() []byte {
	g.room--
	if g.room < 0 {
		return i32(1)
	}
	switch g.n(14) {
	case 0, 1, 2:
		return []byte{byte(module.LocalGet), g.local()}
	case 3:
		return i32(int32(g.n(200) - 100))
	case 4:
		return []byte{byte(module.GlobalGet), 1}
	case 5, 6:
		op := []byte{0x6a, 0x6b, 0x6c, 0x6d, 0x70, 0x71, 0x73, 0x74, 0x48, 0x4d}[g.n(10)]
		return concat(g.value(), g.value(), []byte{op})
	case 7:
		return concat(g.value(), []byte{0x28, 2}, uleb(g.n(70000))) // i32.load
	case 8, 9:
		return concat(g.value(), g.value(), []byte{byte(module.Call), byte(1 + g.n(g.functions))})
	case 10:
		return concat(g.value(), g.value(), i32(int32(1+g.n(g.functions+1))), []byte{byte(module.CallIndirect), binary2, 0})
	case 11:
		return concat(g.value(), g.value(), g.value(), []byte{0x1b}) // select
	case 12:
		if g.n(4) == 0 {
			return concat(i32(int32(g.n(2))), []byte{byte(module.MemoryGrow), 0})
		}
		return []byte{byte(module.MemorySize), 0}
	default:
		// Labels of blocks with results are left alone.
		labels := g.labels
		g.labels = 0
		defer func() { g.labels = labels }()
		return concat([]byte{byte(module.Loop), module.I32}, g.burn(), g.value(), []byte{byte(module.End)})
	}
}
