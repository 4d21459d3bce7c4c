package rig

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// Text formats a module for people: its code roughly in the text format, and
// all its bytes.
func Text(wasm []byte) string {
	var b strings.Builder
	m, err := module.Read(wasm)
	if err != nil {
		return fmt.Sprintf("%v\n%s", err, hex.Dump(wasm))
	}
	for i, t := range m.Types {
		fmt.Fprintf(&b, "(type %d (func (param%s) (result%s)))\n", i, typeNames(t.Params), typeNames(t.Results))
	}
	for i, g := range m.Globals {
		fmt.Fprintf(&b, "(global %d%s %#x)\n", i, typeNames([]byte{g.Type}), g.Init.Bits)
	}
	for f := range m.Bodies {
		fmt.Fprintf(&b, "(func %d (type %d) (local", f, m.Functions[f])
		for _, l := range m.Locals(f) {
			b.WriteString(strings.Repeat(typeNames([]byte{l.Type}), int(l.Count)))
		}
		b.WriteString(")\n")
		code := m.Instructions(f)
		for code.Next() {
			indent := code.Depth
			if code.Op == module.Block || code.Op == module.Loop || code.Op == module.If || code.Op == module.Else {
				indent--
			}
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", max(indent, 0)), line(&code.Instruction))
		}
	}
	return fmt.Sprintf("%s%d bytes:\n%s", b.String(), len(wasm), hex.EncodeToString(wasm))
}

func typeNames(types []byte) string {
	names := map[byte]string{
		module.I32: " i32", module.I64: " i64", module.F32: " f32", module.F64: " f64",
		module.V128: " v128", module.FuncRef: " funcref", module.ExternRef: " externref",
	}
	var b strings.Builder
	for _, t := range types {
		b.WriteString(names[t])
	}
	return b.String()
}

// line is an instruction with its operands.
func line(in *module.Instruction) string {
	o := module.Describe(in.Op)
	switch o.Operands {
	case module.NoOperands:
		return o.Name
	case module.BlockTyped:
		if in.Block.Index >= 0 {
			return fmt.Sprintf("%s (type %d)", o.Name, in.Block.Index)
		}
		return o.Name + typeNames([]byte{in.Block.Value})
	case module.Targets:
		return fmt.Sprintf("%s %v", o.Name, in.Depths)
	case module.Types:
		return "select" + typeNames([]byte{in.Type})
	case module.RefTyped:
		return o.Name + typeNames([]byte{byte(in.Immediate)})
	case module.Memory, module.MemoryLane:
		return fmt.Sprintf("%s offset=%d align=%d lane=%d", o.Name, in.Immediate, 1<<in.Align, in.Lane)
	case module.Lane:
		return fmt.Sprintf("%s %d", o.Name, in.Lane)
	case module.Lanes, module.Vector:
		return fmt.Sprintf("%s % x", o.Name, in.Bytes)
	case module.Float32:
		return fmt.Sprintf("%s %v (%#x)", o.Name, math.Float32frombits(uint32(in.Immediate)), in.Immediate)
	case module.Float64:
		return fmt.Sprintf("%s %v (%#x)", o.Name, math.Float64frombits(in.Immediate), in.Immediate)
	case module.Indices, module.Zeros:
		return fmt.Sprintf("%s %d %d", o.Name, in.Immediate, in.Second)
	}
	return fmt.Sprintf("%s %d", o.Name, int64(in.Immediate))
}
