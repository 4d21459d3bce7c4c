package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// patch is a change to the code: a tick before the instruction at a position,
// or a different form of the bulk operation there.
type patch struct {
	at      uint32
	weight  uint32 // of a tick; 0 = it concerns a bulk operation
	calling bool   // the tick is at an entry, or a call follows it
	op      uint32 // of the bulk operation
}

// maxWeight keeps ticks far from overflowing 32 bits.
const maxWeight = 1 << 24

// weight returns what a tick counts for.
func weight(charge work) uint32 {
	return uint32(min(1+charge.bytes>>grainShift+charge.accesses, maxWeight))
}

// placer decides where a function ticks and with which weights. It is used for
// one function after the other.
type placer struct {
	*survey
	// charges are the costs of the most expensive pass through each loop of the function, in
	// order, sums those of everything in it; inner loops are excluded.
	charges, sums []work
	open          []int // the loops around the current position, as indices in sums
	patches       []patch
	levels        []level // for paths, like frames
	frames        []way
}

// place returns the patches of a function in the order of their positions. They
// are valid until the next call.
func (p *placer) place(i int) ([]patch, error) {
	f := &p.functions[i]
	p.patches = p.patches[:0]
	if len(f.events) == 0 && !f.entry {
		return nil, nil
	}
	rest, loop := p.rest(i, p.charge(i)), 0
	whole, err := p.find(i)
	if err != nil {
		return nil, err
	}
	if f.entry {
		p.tick(uint32(p.m.Bodies[i].Code), whole, true)
	} else if !f.free {
		if err := p.markFirstCalls(i); err != nil {
			return nil, err
		}
	}
	for j := range f.events {
		e := &f.events[j]
		rest.pass(e)
		switch e.kind {
		case loopStart:
			rest.add(p.sums[loop])
			p.tick(e.end, p.charges[loop], callFollows(f.events[j:]))
			loop++
		case directCall, indirectCall:
			if e.tick {
				p.tick(e.start, whole, true)
			}
			if e.after {
				p.tick(e.end, rest.left, false)
			}
		case bulk:
			p.patches = append(p.patches, patch{at: e.start, op: e.arg})
		default:
		}
	}
	return p.patches, nil
}

// remainder is what may still run from a position to the end of a function,
// except the loops that are still to come, which have their own ticks.
type remainder struct {
	s        *survey
	left     work
	at       uint32
	accesses uint32
}

// rest returns what may run from the start of a function, where whole is
// everything outside loops.
func (s *survey) rest(i int, whole work) remainder {
	return remainder{s: s, left: whole, at: uint32(s.m.Bodies[i].Code)}
}

// pass moves past an event.
func (r *remainder) pass(e *event) {
	r.left = r.left.minus(work{uint64(e.end - r.at), uint64(e.accesses - r.accesses)}).minus(r.s.cost(e))
	r.at, r.accesses = e.end, e.accesses
}

// add adds the cost of one pass through a loop whose header was just passed.
func (r *remainder) add(charge work) { r.left = r.left.plus(charge) }

// callFollows reports whether a call immediately follows the first of the
// events, or nearly so.
func callFollows(events []event) bool {
	if len(events) < 2 {
		return false
	}
	next := &events[1]
	return (next.kind == directCall || next.kind == indirectCall) && next.start-events[0].end <= tail
}

func (p *placer) tick(at uint32, charge work, calling bool) {
	p.patches = append(p.patches, patch{at: at, weight: weight(charge), calling: calling})
}

// charge computes the total cost of each loop of a function, excluding inner
// loops, and returns that of the code around the loops.
func (p *placer) charge(i int) (whole work) {
	p.sums, p.open = p.sums[:0], p.open[:0]
	body := p.m.Bodies[i]
	f := &p.functions[i]
	at, accesses := uint32(body.Code), uint32(0)
	add := func(n work) {
		if len(p.open) == 0 {
			whole = whole.plus(n)
			return
		}
		last := p.open[len(p.open)-1]
		p.sums[last] = p.sums[last].plus(n)
	}
	for j := range f.events {
		e := &f.events[j]
		passed := work{accesses: uint64(e.accesses - accesses)}
		accesses = e.accesses
		if e.kind == loopStart {
			passed.bytes = uint64(e.start - at)
			add(passed)
			at = e.start
			p.open = append(p.open, len(p.sums))
			p.sums = append(p.sums, work{})
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

// block is an open block in the walk of markFirstCalls. The flags say whether
// each path to a place has ticked; unreachable code counts as such.
type block struct {
	loop, conditional bool
	before            bool // at its start
	after             bool // on the branches to its end
}

// markFirstCalls marks the calls outside loops that some path from the
// function's entry reaches without a tick, and which need one: those of
// functions that are not free. The header of a loop on the path is a tick.
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
