package rewrite

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/jobhost/jobhost/runtime/module"
)

// The parts of a name section that are kept, see
// https://webassembly.github.io/spec/core/appendix/custom.html#name-section.
const (
	nameModule    = 0
	nameFunctions = 1
)

// writeNames writes a name section with the names of the module and of its
// functions, which are those in stack traces, and of the added functions. The
// indices of functions stay; names of locals are left out. A name section that
// is damaged is left out too.
func (w *writer) writeNames(out *code) {
	for _, s := range w.m.Sections {
		if s.ID != module.SectionCustom || s.Name != "name" {
			continue
		}
		if content := w.names(w.m.Bytes[s.Start:s.End]); content != nil {
			out.op(module.SectionCustom)
			out.sized(content)
		}
		return
	}
}

// names returns the content of the new name section, or nil.
func (w *writer) names(old []byte) code {
	content := make(code, 0, len(old)+256)
	content.sized([]byte("name"))
	r := lax{b: old}
	last := -1
	for len(r.b) > 0 {
		part := r.bytes(1)
		b := r.bytes(r.u32())
		if r.failed || int(part[0]) <= last {
			return nil
		}
		last = int(part[0])
		switch part[0] {
		case nameModule:
			name := lax{b: b}
			name.name()
			if name.failed || len(name.b) > 0 {
				return nil
			}
			content.op(nameModule)
			content.sized(b)
		case nameFunctions:
			functions, ok := w.functionNames(b)
			if !ok {
				return nil
			}
			content.op(nameFunctions)
			content.sized(functions)
		}
	}
	return content
}

// functionNames returns the names of functions with those of the helpers.
func (w *writer) functionNames(old []byte) (code, bool) {
	r := lax{b: old}
	n := r.u32()
	entries := r.b
	for i, last := uint32(0), -1; i < n; i++ {
		index := r.u32()
		r.name()
		if r.failed || int(index) <= last || index >= w.added.yield {
			return nil, false
		}
		last = int(index)
	}
	if r.failed || len(r.b) > 0 {
		return nil, false
	}
	content := make(code, 0, len(old)+128)
	content.u32(n + uint32(len(helpers)))
	content = append(content, entries...)
	for i, name := range helpers {
		content.u32(w.added.yield + uint32(i))
		content.sized([]byte(name))
	}
	return content, true
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

func (r *lax) name() {
	if !utf8.Valid(r.bytes(r.u32())) {
		r.failed = true
	}
}
