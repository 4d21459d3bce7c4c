package rewrite

import (
	"github.com/jobhost/jobhost/runtime/module"
)

// functionWriter writes the code of one function.
type functionWriter struct {
	*writer
	i    int
	f    *function
	code code
	// groups are the function's declarations of locals, scratch the types of
	// the locals that are added after them, as needed.
	groups  []module.LocalGroup
	locals  uint32 // including parameters, excluding those added
	scratch []byte
	top     producer
}

// function begins the code of a function.
func (w *writer) function(i int) *functionWriter {
	w.types.Begin(i)
	return &functionWriter{
		writer: w, i: i, f: &w.functions[i], code: w.buffer[:0], groups: w.m.Locals(i),
		locals: uint32(len(w.m.Types[w.m.Functions[i]].Params) + w.m.Bodies[i].Locals),
	}
}

// local returns an added local of a type: the nth of that type.
func (f *functionWriter) local(t byte, n int) uint32 {
	for i, s := range f.scratch {
		if s == t {
			if n == 0 {
				return f.locals + uint32(i)
			}
			n--
		}
	}
	f.scratch = append(f.scratch, t)
	if n > 0 {
		return f.local(t, n)
	}
	return f.locals + uint32(len(f.scratch)-1)
}

// appendLocals appends the declarations of locals.
func (f *functionWriter) appendLocals(b []byte) []byte {
	b = module.AppendU32(b, uint32(len(f.groups)+len(f.scratch)))
	for _, g := range f.groups {
		b = append(module.AppendU32(b, g.Count), g.Type)
	}
	for _, t := range f.scratch {
		b = append(b, 1, t)
	}
	return b
}

// write writes all instructions, with the patches.
func (f *functionWriter) write(patches []patch) error {
	code := f.m.Instructions(f.i)
	for code.Next() {
		in := &code.Instruction
		bulk := false
		for len(patches) > 0 && patches[0].at == uint32(in.Start) {
			p := patches[0]
			patches = patches[1:]
			if bulk = p.weight == 0; !bulk {
				f.added.appendTick(&f.code, p.weight, p.calling)
			}
		}
		lower := f.lowering(in)
		if err := f.types.Step(in); err != nil {
			return err
		}
		f.top.follow(in)
		switch {
		case bulk:
			f.added.appendBulk(&f.code, in, f.local(module.I32, 0))
		case lower != nil:
			lower(f, in)
		default:
			f.plain(in)
		}
	}
	f.buffer = f.code
	return code.Err()
}

// plain writes an instruction unchanged.
func (f *functionWriter) plain(in *module.Instruction) { f.code = in.Append(f.code) }
