// Package preflight looks at a WebAssembly module before the compiler does,
// and refuses what the compiler would die of, choke on, or explain badly.
//
// wazero 1.12 believes the counts in a module: 15 bytes make it allocate
// 100 GB, which ends the process and cannot be caught. Damaged functions make
// it panic. And many of its steps multiply numbers that a module chooses, so
// that 30 kB keep it busy for minutes, which nothing can interrupt. [Check]
// stands in front of all that. What it lets pass may still be invalid: types
// are the compiler's work. Callers recover from its panics.
package preflight

import (
	"fmt"
	"math"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// Check reads a module and returns it, or why the compiler must not see it:
// an error of type [*jobhost.Error] with code [jobhost.CodeInvalid], whose
// message follows the name of the file, as in "has no …", and which says what
// to do about it. [module.Module.Vectors] then takes the code into account, too.
func Check(b []byte, limits Limits) (*module.Module, error) {
	l := limits.OrDefaults()
	if len(b) > l.ModuleBytes {
		return nil, invalid("leave out debug information: strip it, or link with -s", "is %d bytes long, more than %d", len(b), l.ModuleBytes)
	}
	if what, hint := NotCore(b); what != "" {
		return nil, invalid(hint, "is %s", what)
	}
	m, err := module.Read(b)
	if err != nil {
		return nil, malformed(err)
	}
	for _, check := range []func(*module.Module, *Limits) error{checkNames, checkMemories, checkSegments, checkStart, checkCode, checkVectors} {
		if err := check(m, &l); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// CheckRewritten estimates anew what the compiler would take for a module that
// passed [Check] and was rewritten since, code being how many bytes of code it
// had before. The rewrite adds blocks, calls and locals, and some of what the
// estimate multiplies is its work.
func CheckRewritten(b []byte, code int, limits Limits) error {
	l := limits.OrDefaults()
	// What the rewrite adds may pass limits that were made for what people write.
	l.BodyBytes, l.Locals, l.Nesting, l.Vectors = math.MaxInt, math.MaxInt, math.MaxInt-1, true
	m, err := module.Read(b)
	if err != nil {
		return malformed(err)
	}
	_, err = checkCost(m, &l, code)
	return err
}

// checkCode goes through the functions.
func checkCode(m *module.Module, l *Limits) error {
	grown, err := checkCost(m, l, m.CodeBytes())
	if err != nil {
		return err
	}
	return checkTables(m, l, grown)
}

// checkCost adds up what the compiler would take, and returns which tables the
// code grows. A module of more code than most has more time.
func checkCost(m *module.Module, l *Limits, code int) (grown map[uint64]bool, err error) {
	w := newWalker(m)
	most := l.CompileTime + time.Duration(code)*timePerByte
	grown = make(map[uint64]bool)
	var sum estimate
	for f := range m.Bodies {
		index := m.Imported[module.KindFunction] + f
		if err := w.walk(f, l, grown); err != nil {
			return nil, err
		}
		one := estimated(w.terms())
		if one.bytes > l.CompileBytes {
			return nil, invalid("split it up", "has function %d, for which the compiler would need about %d MiB of memory, more than %d; mostly because of %s",
				index, one.bytes>>20, l.CompileBytes>>20, one.largest)
		}
		one.bytes = 0 // it is used again for the next function
		sum.add(one)
		if err := sum.within(l, most); err != nil {
			return nil, err
		}
	}
	sum.add(estimated(w.moduleTerms()))
	return grown, sum.within(l, most)
}

// walk goes through a function and counts its cost. It notes in grown which
// tables it grows.
func (w *walker) walk(f int, l *Limits, grown map[uint64]bool) error {
	body, index := &w.m.Bodies[f], w.m.Imported[module.KindFunction]+f
	if n := body.End - body.Start; n > l.BodyBytes {
		return invalid("split it up", "has function %d of %d bytes, more than %d", index, n, l.BodyBytes)
	}
	if body.Locals > l.Locals {
		return invalid("build it with optimisation", "has function %d with %d locals, more than %d", index, body.Locals, l.Locals)
	}
	w.start(f)
	code := w.m.Instructions(f)
	for code.Next() {
		if code.Depth > l.Nesting+1 {
			return invalid("split it up", "has function %d with more than %d nested blocks", index, l.Nesting)
		}
		if code.Op == module.TableGrow {
			grown[code.Immediate] = true
		}
		if usesVectors(&code.Instruction) {
			if !l.Vectors {
				return vectorsRefused(fmt.Sprintf("uses vector instructions (SIMD), in function %d", index))
			}
			w.m.Vectors = true
		}
		w.step(&code.Instruction)
	}
	if err := code.Err(); err != nil {
		return malformed(fmt.Errorf("function %d: %w", index, err))
	}
	w.finish()
	return nil
}

// malformed is the error of a module that is not well-formed.
func malformed(err error) error {
	return invalid("build it again, for WebAssembly 2.0; if it was copied, compare its checksum", "is not a valid WebAssembly module: %v", err)
}

// invalid is an error about the file; the text follows its name.
func invalid(hint, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}
