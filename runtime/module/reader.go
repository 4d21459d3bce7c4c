package module

import (
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Error says what is wrong with a module, and where.
type Error struct {
	Offset int // bytes from the start of the module
	What   string
	// Proposal is the proposal with which the module is valid, as far as can be
	// told; "" = it is damaged, or uses a proposal that isn't known here.
	Proposal Proposal
}

// Error returns the fault and its place.
func (e *Error) Error() string { return fmt.Sprintf("%s, at byte %d", e.What, e.Offset) }

// reader reads bytes sequentially. After the first error everything it returns
// is zero.
type reader struct {
	b        []byte // the whole module
	pos, end int
	vectors  bool // a value of type v128 was read
	err      *Error
}

func (r *reader) fail(what string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: r.pos, What: fmt.Sprintf(what, args...)}
	}
}

// lacks is fail for a feature that belongs to a proposal and not to WebAssembly 2.0.
func (r *reader) lacks(p Proposal, what string, args ...any) {
	if r.err == nil {
		r.fail(what, args...)
		r.err.Proposal = p
	}
}

// left returns how many bytes are left.
func (r *reader) left() int {
	if r.err != nil {
		return 0
	}
	return r.end - r.pos
}

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail("it ends too early")
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

func (r *reader) bytes(n int) []byte {
	if n > r.left() {
		r.fail("%d bytes should follow, but there are only %d", n, r.left())
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos : r.pos]
}

// u32 reads an unsigned number of at most 32 bits and 5 bytes.
func (r *reader) u32() uint32 {
	if r.err == nil && r.pos < r.end && r.b[r.pos] < 0x80 { // most are small
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	return uint32(r.unsigned(32))
}

func (r *reader) unsigned(size int) uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if shift+7 > size && bits.Len8(b&0x7f) > size-shift || shift+7 > size && b >= 0x80 {
			r.fail("a number is larger than %d bits", size)
			return 0
		}
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed number of at most size bits.
func (r *reader) signed(size int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if shift+7 >= size {
			// The bits that don't fit must all repeat the sign.
			rest := int8(b<<1) >> (size - shift)
			if b >= 0x80 || rest != 0 && rest != -1 {
				r.fail("a number is larger than %d bits", size)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 {
				v = v << (64 - shift - 7) >> (64 - shift - 7)
			}
			return v
		}
	}
}

// name reads a name, which must be UTF-8.
func (r *reader) name() string {
	n := r.u32()
	b := r.bytes(int(n))
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
		return ""
	}
	return string(b)
}

// count reads how many entries follow, each of at least size bytes. More than
// fit into the remaining bytes, or than most, is an error.
func (r *reader) count(what string, size, most int) int {
	n := int(r.u32())
	switch {
	case r.err != nil:
		return 0
	case n > most:
		r.fail("%d %s are more than %d", n, what, most)
		return 0
	case n > r.left()/size:
		r.fail("%d %s don't fit into the %d bytes that are left of the section", n, what, r.left())
		return 0
	}
	return n
}

// limits reads the limits of a table or memory.
func (r *reader) limits() Limits {
	flag := r.byte()
	if flag > 1 {
		r.lacks(limitsProposal(flag), "limits of kind %d are unknown", flag)
	}
	l := Limits{Min: r.u32(), Max: math.MaxUint32}
	if flag == 1 {
		l.HasMax = true
		l.Max = r.u32()
		if l.Max < l.Min && r.err == nil {
			r.fail("a maximum of %d is less than the minimum of %d", l.Max, l.Min)
		}
	}
	return l
}

func (r *reader) valueType() byte {
	t := r.byte()
	switch t {
	case I32, I64, F32, F64, FuncRef, ExternRef:
	case V128:
		r.vectors = true
	default:
		r.lacks(typeProposal(t), "value type 0x%02x is unknown", t)
	}
	return t
}

func (r *reader) refType() byte {
	t := r.byte()
	if t != FuncRef && t != ExternRef {
		r.lacks(typeProposal(t), "reference type 0x%02x is unknown", t)
	}
	return t
}

func (r *reader) table() Table {
	t := Table{Type: r.refType()}
	t.Limits = r.limits()
	return t
}

func (r *reader) globalType() GlobalType {
	t := GlobalType{Type: r.valueType()}
	switch mutable := r.byte(); mutable {
	case 0:
	case 1:
		t.Mutable = true
	default:
		r.fail("mutability %d of a global is unknown", mutable)
	}
	return t
}
