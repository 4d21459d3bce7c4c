package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// patch is a change to the code: a tick before the instruction at a place, or
// another form of the bulk operation there.
type patch struct {
	at      uint32
	weight  uint32 // of a tick; 0 = it is about a bulk operation
	calling bool   // the tick is at an entry, or a call follows it
	op      uint32 // of the bulk operation
}

// maxWeight keeps ticks far from what fits into 32 bits.
const maxWeight = 1 << 24

// weight is what a tick counts for.
func weight(charge work) uint32 {
	return uint32(min(1+charge.bytes>>grainShift+charge.accesses, maxWeight))
}

// frame is an upper estimate of what a call of a function takes of the stack,
// in bytes: the compiler keeps values there that are needed later, each in a
// place of its own, and an instruction can leave as many as a call has results.
func (s *survey) frame(i int) uint64 {
	b := &s.m.Bodies[i]
	t := &s.m.Types[s.m.Functions[i]]
	return frameBytes + frameCode*uint64(b.End-b.Code) + framePassed*uint64(s.functions[i].passed+len(t.Params)+len(t.Results))
}

// growth is how many bytes a stack may grow between two yields: what a full
// interval pays for, and the function whose tick leads to the yield.
func (s *survey) growth(interval int) int {
	largest := uint64(0)
	for i := range s.functions {
		largest = max(largest, s.frame(i))
	}
	return interval<<stackShift + int(largest)
}

// placer decides where a function ticks and with which weights. It is used for
// one function after the other.
type placer struct {
	*survey
	charges []work // of the function's loops, in their order
	open    []int  // the loops around the current place, as places in charges
	patches []patch
}

// place returns the patches of a function in the order of their places. They
// are valid until the next call.
func (p *placer) place(i int) ([]patch, error) {
	f := &p.functions[i]
	p.patches = p.patches[:0]
	if len(f.events) == 0 && !f.entry {
		return nil, nil
	}
	whole := p.charge(i)
	stack := p.frame(i) >> stackShift
	if f.entry {
		p.tick(uint32(p.m.Bodies[i].Code), whole, stack, true)
	} else if !f.free {
		if err := p.markFirstCalls(i); err != nil {
			return nil, err
		}
	}
	rest, loop := p.rest(i, whole), 0
	for j := range f.events {
		e := &f.events[j]
		rest.pass(e)
		switch e.kind {
		case loopStart:
			charge := p.charges[loop]
			rest.add(charge)
			deep := uint64(0)
			if !f.entry && p.callsIn(f.events[j+1:]) {
				deep = stack
			}
			p.tick(e.end, charge, deep, callFollows(f.events[j:]))
			loop++
		case directCall, indirectCall:
			if e.tick {
				p.tick(e.start, whole, stack, true)
			}
			if e.after {
				p.tick(e.end, rest.left, 0, false)
			}
		case bulk:
			p.patches = append(p.patches, patch{at: e.start, op: e.arg})
		default:
		}
	}
	return p.patches, nil
}

// remainder is what may still run until the end of a function at a place of it,
// but for the loops that are still to come, which tick themselves.
type remainder struct {
	s        *survey
	left     work
	at       uint32
	accesses uint32
}

// rest returns what may run at the start of a function, of which whole is
// everything outside of loops.
func (s *survey) rest(i int, whole work) remainder {
	return remainder{s: s, left: whole, at: uint32(s.m.Bodies[i].Code)}
}

// pass goes on behind an event.
func (r *remainder) pass(e *event) {
	r.left = r.left.minus(work{uint64(e.end - r.at), uint64(e.accesses - r.accesses)}).minus(r.s.cost(e))
	r.at, r.accesses = e.end, e.accesses
}

// add adds what one pass through a loop costs, whose header was just passed.
func (r *remainder) add(charge work) { r.left = r.left.plus(charge) }

// callsIn reports whether the loop whose content the events begin with calls
// functions that are not free.
func (p *placer) callsIn(events []event) bool {
	depth := 1
	for i := range events {
		switch e := &events[i]; e.kind {
		case loopStart:
			depth++
		case loopEnd:
			if depth--; depth == 0 {
				return false
			}
		case directCall, indirectCall:
			if !p.costsLittle(e) {
				return true
			}
		default:
		}
	}
	return false
}

// callFollows reports whether a call follows the first of the events at once,
// or nearly.
func callFollows(events []event) bool {
	if len(events) < 2 {
		return false
	}
	next := &events[1]
	return (next.kind == directCall || next.kind == indirectCall) && next.start-events[0].end <= tail
}

func (p *placer) tick(at uint32, charge work, stack uint64, calling bool) {
	w := min(uint64(weight(charge))+stack, maxWeight)
	p.patches = append(p.patches, patch{at: at, weight: uint32(w), calling: calling})
}

// charge computes what one pass through each loop of a function costs at most,
// the loops in it left out, and returns what the code around the loops costs.
func (p *placer) charge(i int) (whole work) {
	p.charges, p.open = p.charges[:0], p.open[:0]
	body := p.m.Bodies[i]
	f := &p.functions[i]
	at, accesses := uint32(body.Code), uint32(0)
	add := func(n work) {
		if len(p.open) == 0 {
			whole = whole.plus(n)
			return
		}
		last := p.open[len(p.open)-1]
		p.charges[last] = p.charges[last].plus(n)
	}
	for j := range f.events {
		e := &f.events[j]
		passed := work{accesses: uint64(e.accesses - accesses)}
		accesses = e.accesses
		if e.kind == loopStart {
			passed.bytes = uint64(e.start - at)
			add(passed)
			at = e.start
			p.open = append(p.open, len(p.charges))
			p.charges = append(p.charges, work{})
			continue
		}
		passed.bytes = uint64(e.end - at)
		add(passed.plus(p.cost(e)))
		at = e.end
		if e.kind == loopEnd {
			p.open = p.open[:len(p.open)-1]
		}
	}
	add(work{uint64(uint32(body.End) - at), uint64(f.accesses - accesses)})
	return whole
}

// block is a block that is open in the walk of markFirstCalls. The flags say
// whether each way to a place has ticked; what can't be reached counts as such.
type block struct {
	loop, conditional bool
	before            bool // at its start
	after             bool // on the branches to its end
}

// markFirstCalls marks the calls outside of loops that some way from the
// function's entry reaches without a tick, and which need one: those of
// functions that are not free. The header of a loop on the way is a tick.
func (p *placer) markFirstCalls(i int) error {
	f := &p.functions[i]
	events := f.events
	code := p.m.Instructions(i)
	blocks := []block{{after: true}}
	ticked := false
	branch := func(depth uint64) {
		if depth < uint64(len(blocks)) {
			to := &blocks[uint64(len(blocks))-1-depth]
			to.after = to.after && ticked
		}
	}
	for code.Next() {
		switch code.Op {
		case module.Block, module.If, module.Loop:
			blocks = append(blocks, block{
				loop: code.Op == module.Loop, conditional: code.Op == module.If,
				before: ticked, after: true,
			})
			ticked = ticked || code.Op == module.Loop
		case module.Else:
			b := &blocks[len(blocks)-1]
			b.after, b.conditional = b.after && ticked, false
			ticked = b.before
		case module.End:
			b := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			if !b.loop {
				ticked = ticked && b.after && (b.before || !b.conditional)
			}
		case module.BrIf:
			branch(code.Immediate)
		case module.Br:
			branch(code.Immediate)
			ticked = true
		case module.BrTable:
			for _, depth := range code.Depths {
				branch(uint64(depth))
			}
			ticked = true
		case module.Return, module.Unreachable:
			ticked = true
		case module.Call, module.CallIndirect:
			for events[0].start < uint32(code.Start) {
				events = events[1:]
			}
			if e := &events[0]; !ticked && !p.costsLittle(e) {
				e.tick, ticked = true, true
			}
		default:
		}
	}
	return code.Err()
}
