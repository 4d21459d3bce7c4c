package rig_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// parts are the sections of a module, as bytes. What is nil is left out.
type parts struct {
	types, imports, functions, tables, memories, globals, exports, start, elements, count, code, data []byte
	// before and after stand around all others.
	before, after []byte
}

// ordinary is a module with something in most sections: two functions of type
// () → (), the first of which has a body that is given.
func ordinary(body ...byte) parts {
	return parts{
		types: []byte{1, 0x60, 0, 0}, functions: []byte{2, 0, 0}, tables: []byte{1, 0x70, 0, 1}, memories: []byte{1, 0, 1},
		globals: []byte{1, module.I32, 1, 0x41, 0, 0x0b}, exports: []byte{1, 1, 'f', 0, 0},
		elements: []byte{1, 0, 0x41, 0, 0x0b, 1, 0},
		code:     bodies(body),
		data:     []byte{1, 0, 0x41, 0, 0x0b, 1, 'x'},
	}
}

func bodies(first []byte) []byte {
	return append(module.AppendSized([]byte{2}, append([]byte{0}, first...)), 2, 0, 0x0b)
}

func section(id byte, content ...byte) []byte { return module.AppendSized([]byte{id}, content) }

func (p parts) bytes() []byte {
	b := append([]byte(module.Header), p.before...)
	for _, s := range []struct {
		id      byte
		content []byte
	}{
		{module.SectionType, p.types},
		{module.SectionImport, p.imports},
		{module.SectionFunction, p.functions},
		{module.SectionTable, p.tables},
		{module.SectionMemory, p.memories},
		{module.SectionGlobal, p.globals},
		{module.SectionExport, p.exports},
		{module.SectionStart, p.start},
		{module.SectionElement, p.elements},
		{module.SectionDataCount, p.count},
		{module.SectionCode, p.code},
		{module.SectionData, p.data},
	} {
		if s.content != nil {
			b = append(b, section(s.id, s.content...)...)
		}
	}
	return append(b, p.after...)
}

// with returns an ordinary module with something changed.
func with(change func(*parts)) []byte {
	p := ordinary(0x0b)
	change(&p)
	return p.bytes()
}

// judges give verdicts on modules.
type judges struct {
	t                     *testing.T
	interpreter, compiler wazero.Runtime
	count                 int
}

// verdict says which judges accept a module.
func (j *judges) verdict(wasm []byte) string {
	j.count++
	_, err := rig.Check(wasm)
	ours := err == nil
	theirs := [...]string{j.ask(j.interpreter, wasm), j.ask(j.compiler, wasm)}
	switch {
	case ours && theirs == [...]string{"takes", "takes"}:
		return "taken by all"
	case !ours && theirs == [...]string{"refuses", "refuses"}:
		return "refused by all"
	case ours:
		return fmt.Sprintf("TAKEN by us; the interpreter %s it, the compiler %s it", theirs[0], theirs[1])
	}
	return fmt.Sprintf("refused by us; the interpreter %s it, the compiler %s it", theirs[0], theirs[1])
}

func (j *judges) ask(r wazero.Runtime, wasm []byte) (what string) {
	what = "panics on"
	defer func() { _ = recover() }()
	compiled, err := r.CompileModule(j.t.Context(), wasm)
	if err != nil {
		return "refuses"
	}
	_ = compiled.Close(j.t.Context())
	return "takes"
}

// TestAccept compares the verdicts on modules that are valid, invalid and in
// between with a golden file. wazero accepts much that belongs to disabled
// features, and trusts what it should check; the reader must continue to reject
// that. So a change of verdict is noticed, both of wazero and of the reader.
func TestAccept(t *testing.T) {
	t.Parallel()
	j := &judges{t: t}
	j.interpreter = rig.NewRuntime(t.Context(), rig.Interpreted)
	defer j.interpreter.Close(t.Context())
	j.compiler = rig.NewRuntime(t.Context(), rig.Compiled)
	defer j.compiler.Close(t.Context())
	var b strings.Builder
	for _, c := range byteCases() {
		fmt.Fprintf(&b, "%s\n", c.name)
		j.ranges(&b, c)
	}
	for _, c := range moduleCases() {
		fmt.Fprintf(&b, "%s: %s\n", c.name, j.verdict(c.wasm))
	}
	if j.count < 900 {
		t.Errorf("only %d modules were judged", j.count)
	}
	if strings.Contains(b.String(), "TAKEN") {
		t.Error("we take modules that wazero refuses")
	}
	golden(t, "testdata/accept.golden", fmt.Sprintf("%d modules\n\n%s", j.count, b.String()))
}

// ranges writes which values of a byte or number get which verdict.
func (j *judges) ranges(b *strings.Builder, c byteCase) {
	from, last := 0, ""
	flush := func(to int) {
		if last == "" || last == "refused by all" {
			return
		}
		if from == to {
			fmt.Fprintf(b, "  %#x: %s\n", from, last)
			return
		}
		fmt.Fprintf(b, "  %#x to %#x: %s\n", from, to, last)
	}
	for v := range c.most {
		if verdict := j.verdict(c.make(v)); verdict != last {
			flush(v - 1)
			from, last = v, verdict
		}
	}
	flush(c.most - 1)
}

// byteCase is a place where each of many values is tried.
type byteCase struct {
	name string
	most int
	make func(v int) []byte
}

// zeros are what opcodes find behind them: their operands, then unreachables.
var zeros = make([]byte, 20)

func byteCases() []byteCase {
	body := func(code ...[]byte) []byte { return ordinary(append(bytes.Join(code, nil), 0x0b)...).bytes() }
	at := func(name string, change func(p *parts, v byte)) byteCase {
		return byteCase{name, 256, func(v int) []byte { return with(func(p *parts) { change(p, byte(v)) }) }}
	}
	inCode := func(name string, code func(v byte) []byte) byteCase {
		return byteCase{name, 256, func(v int) []byte { return body(code(byte(v))) }}
	}
	prefixed := func(prefix byte, n []byte) []byte { return body([]byte{0, prefix}, n, zeros) }
	return []byteCase{
		inCode("opcode, never reached", func(v byte) []byte { return append([]byte{0, v}, zeros...) }),
		{"number behind 0xfc", 64, func(v int) []byte { return prefixed(0xfc, []byte{byte(v)}) }},
		{"number behind 0xfc, in two bytes", 64, func(v int) []byte { return prefixed(0xfc, []byte{byte(v) | 0x80, 0}) }},
		{"number behind 0xfd", 320, func(v int) []byte { return prefixed(0xfd, module.AppendU32(nil, uint32(v))) }},
		{"number behind 0xfd, in two bytes", 128, func(v int) []byte { return prefixed(0xfd, []byte{byte(v) | 0x80, 0}) }},
		{"number behind 0xfd, in three bytes", 256, func(v int) []byte { return prefixed(0xfd, []byte{byte(v) | 0x80, byte(v>>7) | 0x80, 0}) }},
		inCode("type of select, never reached", func(v byte) []byte { return []byte{0, 0x1c, 1, v, 0x1a, 0x1a} }),
		inCode("types that a select has", func(v byte) []byte { return []byte{0, 0x1c, v, 0x7f, 0x7f, 0x1a} }),
		inCode("type of a block", func(v byte) []byte { return []byte{0, 0x02, v, 0, 0x0b, 0x1a} }),
		inCode("type of a block, padded with 0", func(v byte) []byte { return []byte{0, 0x02, v | 0x80, 0, 0, 0x0b} }),
		inCode("type of a block, padded with 0x7f", func(v byte) []byte { return []byte{0, 0x02, v | 0x80, 0x7f, 0, 0x0b} }),
		inCode("type of a block, fifth byte", func(v byte) []byte { return []byte{0, 0x02, 0x80, 0x80, 0x80, 0x80, v, 0x0b} }),
		inCode("type of ref.null", func(v byte) []byte { return []byte{0xd0, v, 0x1a} }),
		inCode("memory of memory.size", func(v byte) []byte { return []byte{0x3f, v, 0x1a} }),
		inCode("memory of memory.grow", func(v byte) []byte { return []byte{0x41, 0, 0x40, v, 0x1a} }),
		inCode("memory of memory.fill", func(v byte) []byte { return []byte{0, 0xfc, 11, v} }),
		inCode("first memory of memory.copy", func(v byte) []byte { return []byte{0, 0xfc, 10, v, 0} }),
		inCode("second memory of memory.copy", func(v byte) []byte { return []byte{0, 0xfc, 10, 0, v} }),
		inCode("alignment of i32.load", func(v byte) []byte { return []byte{0x41, 0, 0x28, v, 0, 0x1a} }),
		inCode("alignment of v128.load", func(v byte) []byte { return []byte{0x41, 0, 0xfd, 0, v, 0, 0x1a} }),
		inCode("table of call_indirect", func(v byte) []byte { return []byte{0x41, 0, 0x11, 0, v} }),
		inCode("lane of i8x16.extract_lane_s", func(v byte) []byte { return []byte{0, 0xfd, 21, v, 0x1a} }),
		at("type of a local", func(p *parts, v byte) {
			p.code = append(module.AppendSized([]byte{2}, []byte{1, 1, v, 0x0b}), 2, 0, 0x0b)
		}),
		at("form of a type", func(p *parts, v byte) { p.types = []byte{1, v, 0, 0} }),
		at("form of a type, in a group", func(p *parts, v byte) { p.types = []byte{1, v, 1, 0x60, 0, 0} }),
		at("type of a parameter", func(p *parts, v byte) { p.types = []byte{2, 0x60, 0, 0, 0x60, 1, v, 0} }),
		at("type of a result", func(p *parts, v byte) { p.types = []byte{2, 0x60, 0, 0, 0x60, 0, 1, v} }),
		at("type of a global", func(p *parts, v byte) { p.globals = []byte{1, v, 0, 0xd0, v, 0x0b} }),
		at("type of an imported global", func(p *parts, v byte) { p.imports = []byte{1, 1, 'a', 1, 'b', 3, v, 0} }),
		at("mutability of a global", func(p *parts, v byte) { p.globals[2] = v }),
		at("instruction of a constant", func(p *parts, v byte) { p.globals = []byte{1, module.I32, 1, v, 0, 0x0b} }),
		at("second instruction of a constant", func(p *parts, v byte) { p.globals = []byte{1, module.I32, 1, 0x41, 0, 0x41, 0, v, 0x0b} }),
		// Types that have a second byte, in a feature that is off.
		inCode("type of select before func", func(v byte) []byte { return []byte{0, 0x1c, 1, v, 0x70, 0x1a} }),
		inCode("type of a block before func", func(v byte) []byte { return []byte{0, 0x02, v, 0x70, 0, 0x0b, 0x1a} }),
		at("type of a local before func", func(p *parts, v byte) {
			p.code = append(module.AppendSized([]byte{2}, []byte{1, 1, v, 0x70, 0x0b}), 2, 0, 0x0b)
		}),
		at("type of a parameter before func", func(p *parts, v byte) { p.types = []byte{2, 0x60, 0, 0, 0x60, 1, v, 0x70, 0} }),
		at("type of a result before func", func(p *parts, v byte) { p.types = []byte{2, 0x60, 0, 0, 0x60, 0, 1, v, 0x70} }),
		at("type of a global before func", func(p *parts, v byte) { p.globals = []byte{1, v, 0x70, 0, 0xd0, 0x70, 0x0b} }),
		at("type of a table before func", func(p *parts, v byte) { p.tables, p.elements = []byte{1, v, 0x70, 0, 1}, nil }),
		at("type of the elements of a passive segment before func", func(p *parts, v byte) { p.elements = []byte{1, 5, v, 0x70, 1, 0xd0, 0x70, 0x0b} }),
		at("type of a table", func(p *parts, v byte) { p.tables, p.elements = []byte{1, v, 0, 1}, nil }),
		at("first byte of a table with an initial value", func(p *parts, v byte) { p.tables, p.elements = []byte{1, v, 0, 0x70, 0, 1, 0xd0, 0x70, 0x0b}, nil }),
		at("kind of limits of a table", func(p *parts, v byte) { p.tables[2] = v }),
		at("kind of limits of a memory", func(p *parts, v byte) { p.memories[1] = v }),
		at("kind of limits of a memory with a maximum", func(p *parts, v byte) { p.memories = []byte{1, v, 1, 2} }),
		at("kind of an import", func(p *parts, v byte) { p.imports = []byte{1, 1, 'a', 1, 'b', v, 0, 1} }),
		at("kind of an export", func(p *parts, v byte) { p.exports[3] = v }),
		at("kind of an element segment", func(p *parts, v byte) { p.elements[1] = v }),
		at("kind of the elements of a passive segment", func(p *parts, v byte) { p.elements = []byte{1, 1, v, 1, 0} }),
		at("type of the elements of a passive segment", func(p *parts, v byte) { p.elements = []byte{1, 5, v, 1, 0xd0, v, 0x0b} }),
		at("kind of a data segment", func(p *parts, v byte) { p.data[1] = v }),
		at("number of a section at the end", func(p *parts, v byte) { p.after = section(v, 0) }),
		at("number of a section at the beginning", func(p *parts, v byte) { p.before = section(v, 0) }),
		at("start function", func(p *parts, v byte) { p.start = []byte{v} }),
		at("data count", func(p *parts, v byte) { p.count = []byte{v} }),
	}
}

// moduleCase is a complete module.
type moduleCase struct {
	name string
	wasm []byte
}

func moduleCases() []moduleCase {
	var all []moduleCase
	for _, c := range []struct {
		name string
		init []byte
	}{
		{"i32.const", []byte{0x41, 0}},
		{"i64.const", []byte{0x42, 0}},
		{"f32.const", []byte{0x43, 0, 0, 0, 0}},
		{"f64.const", []byte{0x44, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"v128.const", append([]byte{0xfd, 12}, make([]byte, 16)...)},
		{"v128.const, its number in two bytes", append([]byte{0xfd, 0x8c, 0}, make([]byte, 16)...)},
		{"ref.null func", []byte{0xd0, 0x70}},
		{"ref.null extern", []byte{0xd0, 0x6f}},
		{"ref.null exn", []byte{0xd0, 0x69}},
		{"ref.null of type 0", []byte{0xd0, 0}},
		{"ref.func", []byte{0xd2, 0}},
		{"ref.func beyond all", []byte{0xd2, 9}},
		{"global.get of itself", []byte{0x23, 0}},
		{"global.get beyond all", []byte{0x23, 9}},
		{"i32.const, i32.const, i32.add", []byte{0x41, 0, 0x41, 0, 0x6a}},
		{"nothing", nil},
	} {
		end := slices.Concat(c.init, []byte{0x0b})
		for _, place := range []struct {
			name   string
			change func(*parts)
		}{
			{"an i32 global", func(p *parts) { p.globals = append([]byte{1, module.I32, 0}, end...) }},
			{"an i64 global", func(p *parts) { p.globals = append([]byte{1, module.I64, 0}, end...) }},
			{"a v128 global", func(p *parts) { p.globals = append([]byte{1, module.V128, 0}, end...) }},
			{"a funcref global", func(p *parts) { p.globals = append([]byte{1, module.FuncRef, 0}, end...) }},
			{"an externref global", func(p *parts) { p.globals = append([]byte{1, module.ExternRef, 0}, end...) }},
			{"the offset of elements", func(p *parts) { p.elements = append(append([]byte{1, 0}, end...), 0) }},
			{"the offset of data", func(p *parts) { p.data = append(append([]byte{1, 0}, end...), 0) }},
			{"an element", func(p *parts) { p.elements = append([]byte{1, 5, 0x70, 1}, end...) }},
		} {
			all = append(all, moduleCase{c.name + " as " + place.name, with(place.change)})
		}
	}
	add := func(name string, change func(*parts)) { all = append(all, moduleCase{name, with(change)}) }
	add("two memories", func(p *parts) { p.memories = []byte{2, 0, 1, 0, 1} })
	add("a memory of 65,537 pages", func(p *parts) { p.memories = []byte{1, 0, 0x81, 0x80, 4} })
	add("a memory whose maximum is below its minimum", func(p *parts) { p.memories = []byte{1, 1, 2, 1} })
	add("two tables", func(p *parts) { p.tables = []byte{2, 0x70, 0, 1, 0x6f, 0, 1} })
	add("two exports of one name", func(p *parts) { p.exports = []byte{2, 1, 'f', 0, 0, 1, 'f', 0, 1} })
	add("an export of nothing", func(p *parts) { p.exports = []byte{1, 1, 'f', 0, 9} })
	add("an export whose name is not UTF-8", func(p *parts) { p.exports = []byte{1, 1, 0xff, 0, 0} })
	add("a function without a body", func(p *parts) { p.functions = []byte{3, 0, 0, 0} })
	add("a body without a function", func(p *parts) { p.functions = []byte{1, 0} })
	add("a function of no type", func(p *parts) { p.functions = []byte{2, 0, 9} })
	add("a start function with a parameter", func(p *parts) {
		p.types, p.functions, p.start = []byte{2, 0x60, 0, 0, 0x60, 1, 0x7f, 0}, []byte{2, 0, 1}, []byte{1}
	})
	add("elements of functions for a table of externref", func(p *parts) { p.tables = []byte{1, 0x6f, 0, 1} })
	add("a custom section without a name", func(p *parts) { p.after = []byte{0, 0} })
	add("a custom section with half a name", func(p *parts) { p.after = []byte{0, 2, 5, 'a'} })
	add("bytes behind the end of a section", func(p *parts) { p.exports = append(p.exports, 0) })
	add("a section that ends too early", func(p *parts) { p.after = []byte{0, 9, 1} })
	for _, id := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} {
		add(fmt.Sprintf("two sections %d", id), func(p *parts) {
			p.before = append(section(id, 0), section(id, 0)...)
		})
	}
	return all
}

// TestRefusedTypes shows that the bytes for types of features that are off are
// refused wherever a type may stand. wazero takes most of them, and not
// everywhere as the same.
func TestRefusedTypes(t *testing.T) {
	t.Parallel()
	for _, c := range byteCases() {
		values := []int{0x63, 0x64, 0x69}
		switch {
		case strings.HasPrefix(c.name, "form of a type"):
			values = []int{0x4e, 0x4f, 0x50, 0x5e, 0x5f}
		case strings.HasPrefix(c.name, "first byte of a table"):
			values = append(values, 0x40)
		case !strings.HasPrefix(c.name, "type of"), strings.Contains(c.name, "padded"), strings.Contains(c.name, "fifth"):
			continue
		}
		for _, v := range values {
			if _, err := rig.Check(c.make(v)); err == nil {
				t.Errorf("%s: %#x is taken", c.name, v)
			}
		}
	}
}
