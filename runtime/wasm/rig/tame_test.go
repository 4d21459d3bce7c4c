package rig_test

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// neutral are instructions that leave the stack as it is, and do much else.
var neutral = []string{
	"\x01",                     // nop
	"\x02\x40\x0b",             // an empty block
	"\x00",                     // unreachable
	"\x03\x40\x0c\x00\x0b",     // an endless loop
	"\x41\x01\x40\x00\x1a",     // memory.grow 1
	"\x41\xff\x01\x40\x00\x1a", // memory.grow 255
	"\x41\x2a\x24\x00",         // global.set 0
	"\x42\x2a\x24\x01",         // global.set 1
	"\x41\x00\x41\x07\x41\x80\x80\x04\xfc\x0b\x00",             // memory.fill of a page
	"\x41\x00\x41\x08\x41\x80\x80\x02\xfc\x0a\x00\x00",         // memory.copy of half a page
	"\xd0\x70\x41\xe8\x07\xfc\x0f\x00\x1a",                     // table.grow 1000
	"\x41\x00\xd0\x70\x26\x00",                                 // table.set
	"\xfc\x09\x00",                                             // data.drop
	"\xfc\x0d\x00",                                             // elem.drop
	"\x41\x00\x41\x00\x28\x02\x00\x41\x01\x6a\x36\x02\x00",     // counts in memory
	"\x41\x00\x04\x40\x0b",                                     // an empty if
	"\x10\x00",                                                 // a call, maybe of itself
	"\xfd\x0c" + "0123456789abcdef" + "\xfd\x63\x1a",           // i8x16.all_true
	"\x02\x40\x02\x40\x41\x00\x0e\x02\x00\x01\x00\x0b\x0b\x01", // br_table
}

// tame changes one instruction of a module into something that has the same type,
// or adds some that leave the stack as it is: most of what comes out is valid.
func tame(rng *rand.Rand, b []byte) []byte {
	m, err := module.Read(b)
	if err != nil || len(m.Bodies) == 0 {
		return b
	}
	f := rng.IntN(len(m.Bodies))
	var all []module.Instruction
	for code := m.Instructions(f); code.Next(); {
		all = append(all, code.Instruction)
	}
	if len(all) == 0 {
		return b
	}
	in := all[rng.IntN(len(all))]
	body := m.Bodies[f]
	changed, err := m.Encode(func(out []byte, function int) ([]byte, error) {
		if at := m.Bodies[function]; function != f {
			return append(out, b[at.Start:at.End]...), nil
		}
		out = append(out, b[body.Start:in.Start]...)
		out = append(out, instead(rng, b, in)...)
		return append(out, b[in.End:body.End]...), nil
	})
	if err != nil {
		return b
	}
	return changed
}

// instead returns what an instruction becomes.
func instead(rng *rand.Rand, b []byte, in module.Instruction) []byte {
	own := b[in.Start:in.End]
	switch rng.IntN(8) {
	case 0:
		return append(smuggle(smuggled[rng.IntN(len(smuggled))]), own...)
	case 1:
		if longer := padded(own, len(own)-1-rng.IntN(len(own))); len(longer) > 0 {
			return longer[rng.IntN(len(longer))]
		}
	case 2, 3:
		in.Op = alike(rng, in.Op)
		return in.Append(nil)
	case 4:
		if in.Op == module.I32Const || in.Op == module.I64Const {
			in.Immediate = []uint64{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1, 65_535, 65_536}[rng.IntN(8)]
			if in.Op == module.I32Const {
				in.Immediate = uint64(int64(int32(in.Immediate)))
			}
			return in.Append(nil)
		}
	case 5: // a nest, around nothing
		deep := 1 + rng.IntN(2000)
		return slices.Concat(bytes.Repeat([]byte{0x02, 0x40}, deep), bytes.Repeat([]byte{0x0b}, deep), own)
	}
	times := []int{1, 1, 1, 1, 1, 1, 1, 10, 10, 10, 10, 100, 100, 100, 1000, 10_000}[rng.IntN(16)]
	piece := neutral[rng.IntN(len(neutral))]
	if rng.IntN(2) == 0 {
		piece += neutral[rng.IntN(len(neutral))]
	}
	return append(bytes.Repeat([]byte(piece), 1+rng.IntN(times)), own...)
}

// alike returns an instruction with the same operands and type.
func alike(rng *rand.Rand, op uint32) uint32 {
	was := module.Describe(op)
	var all []uint32
	for n := range uint32(256) {
		for _, other := range []uint32{n, 0xfc<<8 | n, 0xfd<<8 | n} {
			o := module.Describe(other)
			if o != nil && o.Pop == was.Pop && o.Push == was.Push && o.Operands == was.Operands && was.Pop != "" && o.Align >= was.Align {
				all = append(all, other)
			}
		}
	}
	if len(all) == 0 {
		return op
	}
	return all[rng.IntN(len(all))]
}
