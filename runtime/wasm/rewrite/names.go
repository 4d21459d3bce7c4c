package rewrite

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/jobhost/jobhost/runtime/module"
)

// nameFunctions is the subsection of a name section with the names of functions,
// see https://webassembly.github.io/spec/core/appendix/custom.html#name-section.
const nameFunctions = 1

// maxName bounds the names of functions, in bytes. wazero composes the name of
// each function on the stack at every trap.
const maxName = 200

// names returns the content of a name section with the names of functions,
// which appear in stack traces, and of the added functions; nil = the module
// has none, or they are damaged. Other names are left out: the name of the
// module would become part of each function's.
func (w *writer) names() code {
	for _, s := range w.m.Sections {
		if s.ID != module.SectionCustom || s.Name != "name" {
			continue
		}
		r := lax{b: w.m.Bytes[s.Start:s.End]}
		for len(r.b) > 0 {
			part := r.bytes(1)
			b := r.bytes(r.u32())
			if r.failed {
				return nil
			}
			if part[0] == nameFunctions {
				return w.functionNames(b)
			}
		}
		return nil
	}
	return nil
}

// functionNames returns the subsection with the names of functions, including
// those of the helpers.
func (w *writer) functionNames(old []byte) code {
	r := lax{b: old}
	n := r.u32()
	var entries code
	for i, last := uint32(0), -1; i < n; i++ {
		index := r.u32()
		name := r.name()
		if r.failed || int(index) <= last || index >= w.added.yield {
			return nil
		}
		last = int(index)
		entries.u32(index)
		entries.sized(shortened(name))
	}
	if r.failed || len(r.b) > 0 {
		return nil
	}
	for i, name := range helpers {
		entries.u32(w.added.yield + uint32(i))
		entries.sized([]byte(name))
	}
	content := make(code, 0, len(entries)+16)
	content.u32(n + uint32(len(helpers)))
	content = append(content, entries...)
	out := code{nameFunctions}
	out.sized(content)
	return out
}

// shortened cuts a name at a character boundary.
func shortened(name []byte) []byte {
	if len(name) <= maxName {
		return name
	}
	end := maxName
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// lax reads a section that may be damaged without harm.
type lax struct {
	b      []byte
	failed bool
}

func (r *lax) u32() uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 || v > math.MaxUint32 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

func (r *lax) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.failed, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *lax) name() []byte {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.failed = true
	}
	return b
}
