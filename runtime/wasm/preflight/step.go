package preflight

import "github.com/jobhost/jobhost/runtime/module"

// Memory for the code of some instructions, in bytes, beyond that for their
// operands and for other instructions: checks that trap have code of their own.
const (
	bytesLoad         = 4_500
	bytesDivide       = 2_700
	bytesTruncate     = 8_000
	bytesCall         = 1_300
	bytesCallIndirect = 13_000
	bytesBulk         = 32_000
	bytesOther        = 400
)

// step handles one instruction. Unreachable code is not compiled; only its
// blocks are tracked.
func (w *walker) step(i *module.Instruction) {
	switch i.Op {
	case module.Block, module.Loop, module.If:
		w.open(i.Op, i.Block)
		return
	case module.Else:
		w.otherwise()
		return
	case module.End:
		w.close()
		return
	}
	if w.dead {
		if i.Op == module.BrTable { // its types are checked all the same
			w.types(i.Depths)
		}
		return
	}
	switch i.Op {
	case module.Br:
		w.branch(i.Immediate)
		w.dead = true
	case module.BrIf:
		w.pop(1)
		w.branch(i.Immediate)
		w.next()
	case module.BrTable:
		w.branches(i.Depths)
	case module.Return:
		w.branch(uint64(len(w.frames) - 1))
		w.dead = true
	case module.Unreachable:
		w.dead = true
	case module.Call:
		w.call(i.Immediate)
	case module.CallIndirect:
		w.pop(1)
		w.cost.heavy += bytesCallIndirect
		if i.Immediate < uint64(len(w.m.Types)) {
			w.apply(&w.m.Types[i.Immediate])
		}
	case module.LocalGet, module.LocalSet, module.LocalTee:
		w.local(i.Op, i.Immediate)
	default:
		w.other(i.Op)
	}
}

// types counts the cost of checking the types of a br_table.
func (w *walker) types(depths []uint32) {
	for _, depth := range depths {
		if int(depth) < len(w.frames) {
			f := &w.frames[len(w.frames)-1-int(depth)]
			w.cost.checked += f.params + f.results
		}
	}
}

// branches handles a br_table.
func (w *walker) branches(depths []uint32) {
	w.pop(1)
	w.cost.targets += len(depths)
	w.cost.targetSquares += len(depths) * len(depths)
	for _, depth := range depths {
		w.branch(uint64(depth))
	}
	w.dead = true
}

func (w *walker) call(function uint64) {
	if function >= uint64(len(w.functions)) {
		return
	}
	w.cost.heavy += bytesCall
	if function < uint64(w.m.Imported[module.KindFunction]) {
		w.cost.importCalls++
	}
	w.apply(&w.m.Types[w.functions[function]])
}

// apply pops the parameters of a function and pushes its results.
func (w *walker) apply(t *module.FuncType) {
	w.pop(len(t.Params))
	w.push(len(t.Results))
	w.cost.passed += len(t.Params) + len(t.Results)
	w.cost.calls++
}

func (w *walker) local(op uint32, index uint64) {
	if index >= uint64(len(w.setIn)) {
		return
	}
	block := int32(w.cost.blocks)
	if op == module.LocalGet {
		if set := w.setIn[index]; set != block {
			w.cost.lookups += w.at.chain
			if set != crossed {
				w.setIn[index] = crossed
				w.crossing++
			}
		}
		w.push(1)
		return
	}
	w.sets++
	if w.setIn[index] != crossed {
		w.setIn[index] = block
	}
	if op == module.LocalSet {
		w.pop(1)
	}
}

// other handles instructions that neither branch nor call nor use locals.
func (w *walker) other(op uint32) {
	pop, push := effect(op)
	switch {
	case module.Describe(op).Accesses():
		w.at.known++
		w.cost.lookups += w.at.chain
		w.cost.heavy += bytesLoad
	case op == module.GlobalGet:
		w.cost.lookups += w.at.chain
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // division and remainder
		w.cost.heavy += bytesDivide
	case op >= 0xa8 && op <= 0xb1 && op != 0xac && op != 0xad: // truncation that traps
		w.cost.heavy += bytesTruncate
	case op == module.MemoryFill, op == module.TableFill: // loops
		w.cost.heavy += bytesBulk
		w.next()
		w.next()
	case op >= module.MemoryInit && op <= module.TableCopy:
		w.cost.heavy += bytesBulk / 2
	default:
		w.cost.heavy += bytesOther
	}
	w.pop(pop)
	w.push(push)
}

func (w *walker) pop(n int)  { w.height = max(w.height-n, 0) }
func (w *walker) push(n int) { w.height += n }
