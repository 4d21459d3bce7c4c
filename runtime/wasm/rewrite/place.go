package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// patch is a change to the code: a tick before the instruction at a place, or
// another form of a bulk operation.
type patch struct {
	at      uint32
	weight  uint32 // of a tick; 0 = it is about a bulk operation
	calling bool   // the tick is at an entry, or a call follows it
	end     uint32 // of the bulk operation
	op      uint32
}

// maxWeight keeps ticks far from what fits into 32 bits.
const maxWeight = 1 << 24

func weight(charge uint64) uint32 {
	return uint32(min(1+charge>>grainShift, maxWeight))
}

// placer decides where a function ticks and with which weights. It is used for
// one function after the other.
type placer struct {
	*survey
	charges []uint64 // of the function's loops, in their order
	open    []int    // the loops around the current place, as places in charges
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
	if f.entry {
		p.tick(uint32(p.m.Bodies[i].Code), whole, true)
	} else if !f.free {
		if err := p.markFirstCalls(i); err != nil {
			return nil, err
		}
	}
	// rest is what may run until the end of the function, but for the loops
	// that are still to come, which tick themselves.
	rest, loop := whole, 0
	at := uint32(p.m.Bodies[i].Code)
	for j := range f.events {
		e := &f.events[j]
		rest -= uint64(e.end-at) + p.cost(e)
		at = e.end
		switch e.kind {
		case loopStart:
			rest += p.charges[loop]
			p.tick(e.end, p.charges[loop], callFollows(f.events[j:]))
			loop++
		case directCall, indirectCall:
			if e.tick {
				p.tick(e.start, whole, true)
			}
			if rest > tail && p.recursive(f, e) {
				p.tick(e.end, rest, false)
			}
		case bulk:
			p.patches = append(p.patches, patch{at: e.start, end: e.end, op: e.arg})
		default:
		}
	}
	return p.patches, nil
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

func (p *placer) tick(at uint32, charge uint64, calling bool) {
	p.patches = append(p.patches, patch{at: at, weight: weight(charge), calling: calling})
}

// charge computes what one pass through each loop of a function costs at most,
// the loops in it left out, and returns what the code around the loops costs.
func (p *placer) charge(i int) (whole uint64) {
	p.charges, p.open = p.charges[:0], p.open[:0]
	body := p.m.Bodies[i]
	at := uint32(body.Code)
	add := func(n uint64) {
		if len(p.open) == 0 {
			whole += n
			return
		}
		p.charges[p.open[len(p.open)-1]] += n
	}
	for j := range p.functions[i].events {
		e := &p.functions[i].events[j]
		if e.kind == loopStart {
			add(uint64(e.start - at))
			at = e.start
			p.open = append(p.open, len(p.charges))
			p.charges = append(p.charges, 0)
			continue
		}
		add(uint64(e.end-at) + p.cost(e))
		at = e.end
		if e.kind == loopEnd {
			p.open = p.open[:len(p.open)-1]
		}
	}
	add(uint64(uint32(body.End) - at))
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
