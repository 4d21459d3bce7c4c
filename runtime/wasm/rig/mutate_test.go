package rig_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// mutate damages a module in one to three places, as chance has it; donor is
// another module, to take sections from.
func mutate(rng *rand.Rand, b, donor []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(2) {
		switch rng.IntN(24) {
		case 0, 1: // a bit
			if len(b) > 0 {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		case 2: // a byte
			if len(b) > 0 {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
		case 3: // a number
			at := rng.IntN(len(b) + 1)
			b = slices.Concat(b[:at], oddNumber(rng), b[min(at+1, len(b)):])
		case 4: // the end
			if rng.IntN(8) == 0 {
				b = b[:rng.IntN(len(b)+1)]
			}
		default:
			parts := split(b)
			if len(parts) == 0 {
				continue
			}
			b = join(mutateSections(rng, parts, split(donor)))
		}
	}
	return b
}

// oddNumber is a number at the edge of something.
func oddNumber(rng *rand.Rand) []byte {
	odd := []uint64{0, 1, 2, 63, 64, 127, 128, 255, 1000, 10_001, 65_535, 65_536, 100_001, 1 << 27, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 35}
	return binary.AppendUvarint(nil, odd[rng.IntN(len(odd))])
}

// chunk is a section with its content, whose size is right again in the end.
type chunk struct {
	id      byte
	content []byte
}

// split takes a module apart as far as its sections can be made out.
func split(b []byte) []chunk {
	var all []chunk
	for b = b[min(8, len(b)):]; len(b) > 1; {
		n, size := binary.Uvarint(b[1:])
		if size <= 0 || n > uint64(len(b)-1-size) {
			break
		}
		all = append(all, chunk{b[0], b[1+size : 1+size+int(n)]})
		b = b[1+size+int(n):]
	}
	return all
}

func join(all []chunk) []byte {
	b := []byte(module.Header)
	for _, s := range all {
		b = append(b, s.id)
		b = binary.AppendUvarint(b, uint64(len(s.content)))
		b = append(b, s.content...)
	}
	return b
}

func mutateSections(rng *rand.Rand, all, donor []chunk) []chunk {
	i := rng.IntN(len(all))
	for n, s := range all {
		if s.id == 10 && rng.IntN(2) == 0 { // code, more often than others
			i = n
		}
	}
	s := &all[i]
	switch rng.IntN(24) {
	case 0: // twice
		return slices.Insert(all, i, *s)
	case 1: // elsewhere
		j := rng.IntN(len(all))
		all[i], all[j] = all[j], all[i]
	case 2: // left out
		return slices.Delete(all, i, i+1)
	case 3: // that of another module
		for _, other := range donor {
			if other.id == s.id {
				*s = other
			}
		}
	case 4: // its number of entries
		_, n := binary.Uvarint(s.content)
		s.content = slices.Concat(oddNumber(rng), s.content[max(n, 0):])
	default: // in it
		s.content = edit(rng, s)
	}
	return all
}

// edit changes bytes in a section, of code within one function.
func edit(rng *rand.Rand, s *chunk) []byte {
	count, n := binary.Uvarint(s.content)
	if s.id != 10 || n <= 0 || count == 0 || count > 1_000_000 {
		return editBytes(rng, s.content)
	}
	at, chosen := n, rng.IntN(int(count))
	for i := 0; at < len(s.content); i++ {
		size, n := binary.Uvarint(s.content[at:])
		if n <= 0 || size > uint64(len(s.content)-at-n) {
			break
		}
		end := at + n + int(size)
		if i == chosen {
			body := editBytes(rng, s.content[at+n:end])
			return slices.Concat(s.content[:at], binary.AppendUvarint(nil, uint64(len(body))), body, s.content[end:])
		}
		at = end
	}
	return editBytes(rng, s.content)
}

// editBytes replaces a few bytes by others, by none, or by more of the same.
func editBytes(rng *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	from := rng.IntN(len(b) + 1)
	to := min(from+rng.IntN(8), len(b))
	var piece []byte
	switch rng.IntN(8) {
	case 0:
	case 1: // a byte becomes another: often another instruction
		b = bytes.Clone(b)
		if from < len(b) {
			b[from] += byte(1 + rng.IntN(3))
		}
		return b
	case 2: // a balanced block, or an instruction that leaves the stack as it is
		pieces := []string{"\x01", "\x02\x40\x0b", "\x03\x40\x0b", "\x00", "\x0f", "\x41\x00\x1a", "\x41\x00\x0d\x00", "\x20\x00\x1a", "\x41\x00\x04\x40\x0b", "\x3f\x00\x40\x00\x1a"}
		return slices.Concat(b[:from], bytes.Repeat([]byte(pieces[rng.IntN(len(pieces))]), 1+rng.IntN(100)), b[from:])
	case 3: // what may end a number gets one byte more
		if longer := padded(b, min(from, len(b)-1)); len(longer) > 0 {
			return longer[rng.IntN(len(longer))]
		}
		return b
	case 4: // code that only one of two decoders sees
		hidden := smuggled[rng.IntN(len(smuggled))]
		return slices.Concat(b[:from], smuggle(hidden), b[from:])
	case 5:
		piece = bytes.Repeat(b[from:to], 1+rng.IntN(300))
	case 6:
		piece = oddNumber(rng)
	default:
		for range rng.IntN(6) {
			piece = append(piece, byte(rng.IntN(256)))
		}
	}
	return slices.Concat(b[:from], piece, b[to:])
}

// smuggled is code of up to seven bytes that changes nothing on the stack: an
// endless loop, and globals that are set.
var smuggled = []string{"\x03\x40\x0c\x00\x0b", "\x41\x2a\x24\x00", "\x42\x2a\x24\x00", "\x41\x2a\x24\x01"}

// smuggle hides code as in TestHiddenCode: to the specification
// it is part of a constant in a block that is left at once; to a decoder that
// reads one byte behind 0xfd, the block ends in the constant, before the code.
func smuggle(code string) []byte {
	b := []byte{0x02, 0x40, 0x41, 0x01, 0x0d, 0x00, 0xfd, 0x0c} // block, br_if 0, v128.const
	b = append(b, make([]byte, 16)...)
	b = append(b, 0x41, 0x00, 0xfd, 0x8c, 0x00, 0x0b)
	b = append(b, code...)
	b = append(b, bytes.Repeat([]byte{0x01}, 7-len(code))...)
	b = append(b, 0x02, 0x40, 0x41, 0x00, 0x41, 0x00, 0x41, 0x00)
	return append(b, 0x1a, 0x1a, 0x1a, 0x0b)
}
