package machine

import "encoding/binary"

// encode returns the record as bytes: the same for the same record.
//
//	version, digest of the graph, phase, start, begun, slots
//	number of steps, runs of steps in the same status (length<<4 | status)
//	details, signals and seen, each after its number
//
// Numbers are varints in their shortest form. Statuses of neighbours are mostly
// the same, so that 10,000 steps take as little room as ten.
func (r *record) encode() []byte {
	b := make([]byte, 0, 64+6*len(r.details)+8*len(r.seen))
	b = append(b, version)
	b = binary.LittleEndian.AppendUint64(b, r.digest)
	b = append(b, byte(r.phase))
	b = binary.AppendUvarint(b, uint64(r.started))
	b = binary.AppendUvarint(b, uint64(r.begun))
	b = binary.AppendUvarint(b, uint64(r.slots))
	b = appendStatus(b, r.status)
	b = binary.AppendUvarint(b, uint64(len(r.details)))
	last := int32(-1)
	for i := range r.details {
		d := &r.details[i]
		b = binary.AppendUvarint(b, uint64(d.step-last-1))
		last = d.step
		b = d.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(r.signals)))
	for _, s := range r.signals {
		b = binary.AppendUvarint(b, uint64(s.step))
		b = binary.AppendUvarint(b, uint64(s.slot))
	}
	b = binary.AppendUvarint(b, uint64(len(r.seen)))
	for _, digest := range r.seen {
		b = binary.LittleEndian.AppendUint64(b, digest)
	}
	return b
}

func appendStatus(b []byte, list []status) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := 0; i < len(list); {
		s, from := list[i], i
		for i < len(list) && list[i] == s {
			i++
		}
		b = binary.AppendUvarint(b, uint64(i-from)<<4|uint64(s))
	}
	return b
}

// What a detail has, after the two bits of its via.
const (
	hasRuns = 1 << (iota + 2)
	hasReplaced
	hasSlot
	isUntimed
	isEmpty
	detailBits = 1<<(iota+2) - 1
)

// append adds a detail without its step. The numbers that are most often there
// take no room.
func (d *detail) append(b []byte) []byte {
	flags := byte(d.via)
	if d.untimed {
		flags |= isUntimed
	}
	if d.empty {
		flags |= isEmpty
	}
	for _, f := range d.numbers() {
		if *f.n != f.usual {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	for _, f := range d.numbers() {
		if *f.n != f.usual {
			b = binary.AppendUvarint(b, uint64(*f.n))
		}
	}
	return b
}

// number is a part of a detail that is there only if it isn't as usual.
type number struct {
	flag  byte
	n     *uint32
	usual uint32
}

func (d *detail) numbers() [3]number {
	return [...]number{{hasRuns, &d.runs, 1}, {hasReplaced, &d.replaced, 0}, {hasSlot, &d.slot, 0}}
}
