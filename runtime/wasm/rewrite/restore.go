package rewrite

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

func (s *survey) globalIndex(defined int) uint32 {
	return uint32(s.m.Imported[module.KindGlobal] + defined)
}

// isNumber reports whether the host can read and set a global of a type completely.
func isNumber(t byte) bool {
	return t == module.I32 || t == module.I64 || t == module.F32 || t == module.F64
}

// data returns the data segments to take out. If one has an offset that is not
// known here all stay, since their order matters where they overlap.
func (s *survey) data() (all []Data, gone bool) {
	for _, d := range s.m.Data {
		if d.Mode == module.Active && d.Offset.Op != byte(module.I32Const) {
			return nil, false
		}
	}
	for _, d := range s.m.Data {
		if d.Mode == module.Active {
			all = append(all, Data{Offset: uint32(d.Offset.Bits), Bytes: d.Init})
		}
	}
	return all, true
}

// unrestorable says what the guest may change that no reset restores, in the
// functions that can still run after the snapshot, and what it changes before
// that a copy of memory and globals lacks.
func (s *survey) unrestorable(once []string) string {
	for i := range s.m.Imported[module.KindGlobal] {
		if s.written[uint32(i)] {
			return fmt.Sprintf("it sets global %d, which it imports", i)
		}
	}
	for i, g := range s.m.Globals {
		if index := s.globalIndex(i); s.written[index] && !isNumber(g.Type) {
			return fmt.Sprintf("it sets global %d, which is no number", index)
		}
	}
	var init, drop []uint32
	for _, i := range s.reachable(s.later(once)) {
		f := &s.functions[i]
		if f.tables {
			return fmt.Sprintf("function %d changes a table", s.index(i))
		}
		init, drop = append(init, f.init...), append(drop, f.drop...)
	}
	for _, i := range s.reachable(s.first(once)) {
		f := &s.functions[i]
		if f.tables {
			return fmt.Sprintf("function %d changes a table while the module initialises", s.index(i))
		}
		drop = append(drop, f.drop...)
	}
	slices.Sort(init)
	for _, d := range drop {
		if _, found := slices.BinarySearch(init, d); found {
			return fmt.Sprintf("it drops data segment %d, which it needs again", d)
		}
	}
	return ""
}

// later returns the functions that may be called after those that run once:
// making a reference counts as a call.
func (s *survey) later(once []string) []uint32 {
	roots := s.referenced()
	for _, e := range s.m.Exports {
		if e.Kind == module.KindFunction && !slices.Contains(once, e.Name) {
			roots = append(roots, e.Index)
		}
	}
	return roots
}

// first returns the functions that the host calls once.
func (s *survey) first(once []string) []uint32 {
	var roots []uint32
	if s.m.Start >= 0 {
		roots = append(roots, uint32(s.m.Start))
	}
	for _, e := range s.m.Exports {
		if e.Kind == module.KindFunction && slices.Contains(once, e.Name) {
			roots = append(roots, e.Index)
		}
	}
	return roots
}

// reachable returns the functions that can run when roots are called, by index
// among those defined in the module, excluding indirect calls.
func (s *survey) reachable(roots []uint32) []int {
	seen := make([]bool, len(s.functions))
	var found []int
	reach := func(index uint32) {
		i := int(index) - s.m.Imported[module.KindFunction]
		if i >= 0 && i < len(seen) && !seen[i] {
			seen[i] = true
			found = append(found, i)
		}
	}
	for _, index := range roots {
		reach(index)
	}
	for next := 0; next < len(found); next++ {
		for i := range s.functions[found[next]].events {
			if e := &s.functions[found[next]].events[i]; e.kind == directCall {
				reach(e.arg)
			}
		}
	}
	return found
}
