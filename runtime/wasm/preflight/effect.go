package preflight

// effect is how many operands an instruction takes and gives, for those where
// its opcode alone says so.
func effect(op uint32) (pop, push int) {
	switch {
	case op >= 0xfd00:
		return effectVector(op - 0xfd00)
	case op >= 0xfc00:
		return effectMisc(op - 0xfc00)
	case op >= 0x45:
		return effectArithmetic(op)
	case op == 0x1a, op == 0x24: // drop, global.set
		return 1, 0
	case op == 0x1b, op == 0x1c: // select
		return 3, 1
	case op == 0x23, op == 0x3f, op >= 0x41: // global.get, memory.size, constants
		return 0, 1
	case op == 0x25, op == 0x40, op >= 0x28 && op <= 0x35: // table.get, memory.grow, loads
		return 1, 1
	case op == 0x26, op >= 0x36: // table.set, stores
		return 2, 0
	}
	return 0, 0
}

func effectArithmetic(op uint32) (pop, push int) {
	switch {
	case op == 0xd0, op == 0xd2: // ref.null, ref.func
		return 0, 1
	case op == 0x45, op == 0x50, // eqz
		op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, // clz, ctz, popcnt
		op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f, // abs to sqrt
		op >= 0xa7: // conversions, sign extension, ref.is_null
		return 1, 1
	}
	return 2, 1
}

func effectMisc(n uint32) (pop, push int) {
	switch {
	case n <= 7: // saturating truncation
		return 1, 1
	case n == 9, n == 13: // drops
		return 0, 0
	case n == 15: // table.grow
		return 2, 1
	case n == 16: // table.size
		return 0, 1
	}
	return 3, 0
}

func effectVector(n uint32) (pop, push int) {
	switch {
	case n == 11, n >= 88 && n <= 91: // stores
		return 2, 0
	case n == 12: // v128.const
		return 0, 1
	case n == 82: // bitselect
		return 3, 1
	case n <= 10, n == 92, n == 93, // loads
		n >= 15 && n <= 22, n == 24, n == 25, n == 27, n == 29, n == 31, n == 33, // splats, lanes
		n == 77, n == 83, n == 94, n == 95, // not, any_true, conversions of floats
		n >= 103 && n <= 106, n == 116, n == 117, n == 122, n == 148, // rounding
		n >= 124 && n <= 127, n >= 248: // pairwise sums, conversions
		return 1, 1
	case n >= 96 && n < 224:
		// The types of lanes of integers have the same instructions 32 apart;
		// the first row has narrowing, popcnt and others in their places.
		return effectLanes(n)
	case n == 224, n == 225, n == 227, n == 236, n == 237, n == 239:
		return 1, 1
	}
	return 2, 1
}

func effectLanes(n uint32) (pop, push int) {
	switch k := n % 32; {
	case k == 0, k == 1, k == 3, k == 4, // abs, neg, all_true, bitmask
		n == 98,                       // popcnt
		n >= 128 && k >= 7 && k <= 10: // extension
		return 1, 1
	}
	return 2, 1
}
