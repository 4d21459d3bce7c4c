package rewrite

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

func (s *survey) globalIndex(defined int) uint32 {
	return uint32(s.m.Imported[module.KindGlobal] + defined)
}

// isNumber reports whether the host can read and set a global of a type whole.
func isNumber(t byte) bool {
	return t == module.I32 || t == module.I64 || t == module.F32 || t == module.F64
}

// data are the data segments to take out. When one has an offset that is not
// known here all stay, since their order counts where they overlap.
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

// unrestorable says what the guest may change that no reset brings back, in
// the functions that can still run after the snapshot.
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
	for _, i := range s.reachable(once) {
		f := &s.functions[i]
		if f.tables {
			return fmt.Sprintf("function %d changes a table", s.index(i))
		}
		init, drop = append(init, f.init...), append(drop, f.drop...)
	}
	slices.Sort(init)
	for _, d := range drop {
		if _, found := slices.BinarySearch(init, d); found {
			return fmt.Sprintf("it drops data segment %d, which it needs again", d)
		}
	}
	return ""
}

// reachable are the functions that can run after those that run once.
func (s *survey) reachable(once []string) []int {
	seen := make([]bool, len(s.functions))
	var found []int
	reach := func(index uint32) {
		i := int(index) - s.m.Imported[module.KindFunction]
		if i >= 0 && i < len(seen) && !seen[i] {
			seen[i] = true
			found = append(found, i)
		}
	}
	for _, e := range s.m.Exports {
		if e.Kind == module.KindFunction && !slices.Contains(once, e.Name) {
			reach(e.Index)
		}
	}
	// A reference is taken for a call.
	for _, index := range s.referenced() {
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
