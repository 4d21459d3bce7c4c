// Package preflight looks at a WebAssembly module before the compiler does, and
// rejects what the compiler would crash on, choke on, or explain badly.
//
// wazero 1.12 trusts the counts in a module: 15 bytes make it allocate 100 GB,
// which ends the process and cannot be caught. Damaged functions make it panic.
// And many of its steps multiply numbers that a module chooses, so that 30 kB
// keep it busy for minutes, which nothing can interrupt. [Check] guards against
// all that. What it accepts may still be invalid: checking types is the
// compiler's job. Callers recover from its panics.
package preflight

import (
	"fmt"
	"math"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// Check does all the checks before a module is rewritten: [Read], [Code] and
// [Estimate.Within].
func Check(b []byte, limits Limits) (*module.Module, error) {
	m, err := Read(b, limits)
	if err != nil {
		return nil, err
	}
	e, err := Code(m, limits)
	if err != nil {
		return nil, err
	}
	return m, e.Within(limits, m.CodeBytes())
}

// Read reads a module and returns it, or why the compiler must not see it: an
// error of type [*jobhost.Error] with code [jobhost.CodeInvalid], whose message
// follows the name of the file, as in "has no …", and which says what to do
// about it. The code of functions is left to [Code], so that the imports of a
// module can be judged before.
func Read(b []byte, limits Limits) (*module.Module, error) {
	l := limits.OrDefaults()
	if len(b) > l.ModuleBytes {
		return nil, jobhost.Invalid("", StripHint, "is %d bytes long, more than %d", len(b), l.ModuleBytes)
	}
	if what, hint := NotCore(b); what != "" {
		return nil, jobhost.Invalid("", hint, "is %s", what)
	}
	m, err := module.Read(b)
	if err != nil {
		return nil, malformed(err)
	}
	for _, check := range []func(*module.Module, *Limits) error{checkNames, checkMemories, checkSegments, checkStart} {
		if err := check(m, &l); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// StripHint is what to do about a file that is too large.
const StripHint = "leave out debug information: strip it, or link with -s"

// Code checks the functions of a module and estimates the cost of compiling it.
// [module.Module.Vectors] then takes the code into account, too.
func Code(m *module.Module, limits Limits) (Estimate, error) {
	l := limits.OrDefaults()
	e, grown, err := estimateOf(m, &l)
	if err != nil {
		return e, err
	}
	if err := checkTables(m, &l, grown); err != nil {
		return e, err
	}
	return e, checkVectors(m, &l)
}

// Rewritten estimates the cost of compiling a module that passed [Code] and was
// then rewritten. The rewrite adds blocks, calls and locals, and thereby some of
// what the estimate multiplies.
func Rewritten(b []byte) (Estimate, error) {
	// What the rewrite adds may exceed limits that were made for what people write.
	l := Limits{BodyBytes: math.MaxInt, Locals: math.MaxInt, Nesting: math.MaxInt - 1, Vectors: true}.OrDefaults()
	m, err := module.Read(b)
	if err != nil {
		return Estimate{}, malformed(err)
	}
	e, _, err := estimateOf(m, &l)
	return e, err
}

// estimateOf sums the costs of the compiler, and returns which tables the code
// grows.
func estimateOf(m *module.Module, l *Limits) (sum Estimate, grown map[uint64]bool, err error) {
	w := newWalker(m)
	grown = make(map[uint64]bool)
	for f := range m.Bodies {
		if err := w.walk(f, l, grown); err != nil {
			return sum, nil, err
		}
		sum.next(estimated(m.Imported[module.KindFunction]+f, w.terms()))
	}
	sum.add(estimated(-1, w.moduleTerms()))
	return sum, grown, nil
}

// walk goes through a function and counts its cost. It records in grown which
// tables it grows.
func (w *walker) walk(f int, l *Limits, grown map[uint64]bool) error {
	body, index := &w.m.Bodies[f], w.m.Imported[module.KindFunction]+f
	if n := body.End - body.Start; n > l.BodyBytes {
		return jobhost.Invalid("", "split it up", "has function %d of %d bytes, more than %d", index, n, l.BodyBytes)
	}
	if body.Locals > l.Locals {
		return jobhost.Invalid("", "build it with optimisation", "has function %d with %d locals, more than %d", index, body.Locals, l.Locals)
	}
	w.start(f)
	code := w.m.Instructions(f)
	for code.Next() {
		if code.Depth > l.Nesting+1 {
			return jobhost.Invalid("", "split it up", "has function %d with more than %d nested blocks", index, l.Nesting)
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
