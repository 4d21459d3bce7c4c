package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// outline is what must be known of a module before the compiler sees it.
type outline struct {
	imports  []importEntry
	memories []memoryLimits
}

// importEntry is one import.
type importEntry struct {
	module, name string
	kind         byte // 0 function, 1 table, 2 memory, 3 global, 4 tag
}

// memoryLimits are in pages; hasMax is false when there is no maximum.
type memoryLimits struct {
	min, max uint64
	hasMax   bool
}

// The sections by their numbers. Most begin with the
// number of their entries.
const (
	customSection    = 0
	importSection    = 2
	memorySection    = 5
	startSection     = 8
	dataCountSection = 12
)

// maxImports bounds the list of imports; a module needs each only once.
const maxImports = 10_000

var errCutOff = errors.New("it is cut off or damaged")

// readOutline reads the imports and memories. It believes no count or size:
// memory is used only in proportion to bytes that are there.
func readOutline(b []byte) (*outline, error) {
	r := reader{b: b[len(coreHeader):]}
	o := &outline{}
	for len(r.b) > 0 && r.err == nil {
		id := r.byte()
		section := reader{b: r.bytes(r.uint())}
		if r.err != nil {
			break
		}
		if !plausible(id, section, len(b)) {
			section.fail()
		}
		switch id {
		case importSection:
			o.readImports(&section)
		case memorySection:
			for n := section.uint(); n > 0 && section.err == nil; n-- {
				o.memories = append(o.memories, section.limits())
			}
		}
		r.err = section.err
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w at byte %d", r.err, len(b)-len(r.b))
	}
	return o, nil
}

// plausible reports whether a section can have as many entries as it says,
// each of at least one byte. The compiler would believe it and allocate.
func plausible(id byte, section reader, moduleBytes int) bool {
	switch {
	case id == customSection || id == startSection || id > dataCountSection:
		return true
	case id == dataCountSection:
		return section.uint() <= uint64(moduleBytes)
	case id == importSection:
		return section.uint() <= maxImports
	}
	n := section.uint()
	return section.err == nil && n <= uint64(len(section.b))
}

func (o *outline) readImports(r *reader) {
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		entry := importEntry{module: r.name(), name: r.name(), kind: r.byte()}
		switch entry.kind {
		case 0: // function: a type
			r.uint()
		case 1: // table: a type and limits
			r.byte()
			r.limits()
		case 2: // memory
			r.limits()
		case 3: // global: a type and whether it changes
			r.byte()
			r.byte()
		case 4: // tag: an attribute and a type
			r.byte()
			r.uint()
		default:
			r.fail()
		}
		if r.err == nil {
			o.imports = append(o.imports, entry)
		}
	}
}

// reader reads a module; after the first error everything it returns is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errCutOff
	}
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// uint reads a number of at most 32 bits.
func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.err != nil || n <= 0 || v > math.MaxUint32 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) name() string { return string(r.bytes(r.uint())) }

func (r *reader) limits() memoryLimits {
	l := memoryLimits{hasMax: r.byte()&1 != 0}
	l.min = r.uint()
	if l.hasMax {
		l.max = r.uint()
	}
	return l
}
