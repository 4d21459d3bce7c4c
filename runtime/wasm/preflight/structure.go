package preflight

import (
	"fmt"
	"math"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

const pageBytes = 64 << 10

// checkMemories checks the initial size of the memories.
func checkMemories(m *module.Module, l *Limits) error {
	if len(m.Memories) > 1 {
		return jobhost.Invalid("", proposals[module.MultiMemory], "needs %s, which this host doesn't run: it has %d", module.MultiMemory, len(m.Memories))
	}
	for _, memory := range m.Memories {
		if memory.Min > maxPages {
			return jobhost.Invalid("", "declare a smaller one", "needs %s of memory at the start, 4 GiB or more", mebibytes(memory.Min))
		}
		if int(memory.Min) > l.MemoryPages {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "memory",
				Message: fmt.Sprintf("needs at least %s of memory, the limit is %s", mebibytes(memory.Min), mebibytes(uint32(l.MemoryPages))),
				Hint:    fmt.Sprintf("set memory = %q for the worker, or more", sizeText(min(int64(memory.Min)*pageBytes, 4095<<20))),
			}
		}
	}
	return nil
}

// mebibytes formats a number of pages for people.
func mebibytes(pages uint32) string {
	return fmt.Sprintf("%.4g MiB", float64(pages)*pageBytes/(1<<20))
}

// checkStart checks the function that runs when a module is instantiated.
func checkStart(m *module.Module, _ *Limits) error {
	if m.Start < 0 {
		return nil
	}
	t, ok := m.FunctionType(uint32(m.Start))
	if !ok {
		return malformed(fmt.Errorf("the start function is %d, which there is not", m.Start))
	}
	if s := Signature(t); s != "() → ()" {
		return malformed(fmt.Errorf("the start function is %s instead of () → ()", s))
	}
	return nil
}

// checkTables limits the size that tables can reach. The limit on memory
// doesn't cover them, and each entry takes 8 bytes. A maximum counts only for a
// table that the code grows; the host grows none.
func checkTables(m *module.Module, l *Limits, grown map[uint64]bool) error {
	entries, growing := 0, 0
	for i, t := range m.Tables {
		index := uint64(m.Imported[module.KindTable] + i)
		entries += int(t.Min)
		switch {
		case !grown[index]:
			growing += int(t.Min)
		case !t.HasMax:
			return jobhost.Invalid("", fmt.Sprintf("declare one of at most %d", l.TableEntries), "grows table %d, which has no maximum", index)
		default:
			growing += int(t.Max)
		}
	}
	if entries > l.TableEntries {
		return jobhost.Invalid("", "fewer functions whose address is taken need fewer entries", "has tables of %d entries, more than %d", entries, l.TableEntries)
	}
	if growing > l.TableEntries {
		return jobhost.Invalid("", "declare a smaller maximum", "can grow its tables to %d entries, more than %d", min(growing, math.MaxUint32), l.TableEntries)
	}
	return nil
}

// maxNamed is how many data segments a module may have if its code can name them.
const maxNamed = 100_000

// checkSegments limits what each instance retains for segments besides its
// memory: a reference takes some 50 bytes, and a data segment that code can name
// 24. Other data segments are dropped once they are written.
func checkSegments(m *module.Module, l *Limits) error {
	entries := 0
	for i := range m.Elements {
		if e := &m.Elements[i]; e.Mode != module.Declarative {
			entries += len(e.Functions) + len(e.Exprs)
		}
	}
	if entries > l.TableEntries {
		return jobhost.Invalid("", "fewer functions whose address is taken need fewer entries", "has element segments of %d entries, more than %d", entries, l.TableEntries)
	}
	if n := len(m.Data); m.DataCount >= 0 && n > maxNamed {
		return jobhost.Invalid("", "link them together", "has %d data segments that its code can name, more than %d", n, maxNamed)
	}
	return nil
}
