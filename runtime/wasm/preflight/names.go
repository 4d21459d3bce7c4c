package preflight

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// maxNames is how many names the name section may have.
const maxNames = 1_000_000

// The subsections of the name section that the compiler reads. It skips others.
const (
	moduleName byte = iota
	functionNames
	localNames
)

var errNames = errors.New("its name section is damaged")

// checkNames checks the name section, which says what functions and locals were
// called in the source. Nothing depends on it, but the compiler trusts its
// counts, too. Names of other things are skipped.
func checkNames(m *module.Module, _ *Limits) error {
	for _, s := range m.Sections {
		if s.ID != module.SectionCustom || s.Name != "name" {
			continue
		}
		r := nameReader{b: m.Bytes[s.Start:s.End], left: maxNames}
		for len(r.b) > 0 && !r.bad {
			kind := r.take(1)
			part := nameReader{b: r.take(r.number()), left: r.left}
			if !r.bad {
				part.read(kind[0])
			}
			r.left = part.left
			r.bad = r.bad || part.bad
		}
		switch {
		case r.left < 0:
			return jobhost.Invalid("", "strip it, or link with -s", "has a name section with more than %d names", maxNames)
		case r.bad:
			return jobhost.Invalid("", "strip it, or link with -s", "is not a valid WebAssembly module: %v", errNames)
		}
	}
	return nil
}

// nameReader reads names; once it is bad, everything it returns is zero.
type nameReader struct {
	b    []byte
	left int // names that may still follow
	bad  bool
}

// read reads a complete subsection.
func (r *nameReader) read(kind byte) {
	switch kind {
	case moduleName:
		r.name()
	case functionNames:
		r.names()
	case localNames:
		for n := r.count(); n > 0 && !r.bad; n-- {
			r.number()
			r.names()
		}
	default:
		return
	}
	r.bad = r.bad || len(r.b) > 0
}

// names reads pairs of an index and a name.
func (r *nameReader) names() {
	for n := r.count(); n > 0 && !r.bad; n-- {
		r.number()
		r.name()
	}
}

// count reads how many entries follow, each of at least two bytes.
func (r *nameReader) count() int {
	n := r.number()
	if n > len(r.b)/2 {
		r.bad = true
		return 0
	}
	r.left -= n
	r.bad = r.bad || r.left < 0
	return n
}

func (r *nameReader) name() {
	r.bad = !utf8.Valid(r.take(r.number())) || r.bad
}

func (r *nameReader) number() int {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 || n > 5 || v > math.MaxUint32 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *nameReader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
