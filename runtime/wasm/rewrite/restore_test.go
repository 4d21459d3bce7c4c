package rewrite_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// one is an assembly whose function f0 has the code.
func one(code ...[]byte) *assembly {
	return &assembly{pages: 1, table: 5, start: -1, functions: []routine{{kind: action, code: concat(code...)}}}
}

func TestUnrestorable(t *testing.T) {
	t.Parallel()
	setTable := concat(i32(0), []byte{byte(module.RefNull), module.FuncRef, byte(module.TableSet), 0})
	dropData := []byte{0xfc, 0x09, 0}
	initData := concat(i32(0), i32(0), i32(1), []byte{0xfc, 0x08, 0, 0})
	passive := func(a *assembly) *assembly {
		a.data, a.offsets = [][]byte{[]byte("data")}, []int{-1}
		return a
	}
	reference := one([]byte{byte(module.RefNull), module.FuncRef, byte(module.GlobalSet), 0})
	reference.globals = []byte{module.FuncRef}
	unused := one()
	unused.globals = []byte{module.FuncRef}
	dropping := passive(one(initData, dropData))
	dropping.table = 0
	setOnce := one(setTable)
	setOnce.empty = true // what a table refers to may run at any time
	for name, tc := range map[string]struct {
		module *assembly
		once   []string
		want   string
	}{
		"nothing":                       {module: one()},
		"a table is set":                {module: one(setTable), want: "function 0 changes a table"},
		"a table is set by reference":   {module: one(setTable), once: []string{"f0"}, want: "function 0 changes a table"},
		"a table grows":                 {module: one([]byte{byte(module.RefNull), module.FuncRef}, i32(1), []byte{0xfc, 0x0f, 0}, drop), want: "function 0 changes a table"},
		"elements are dropped":          {module: one([]byte{0xfc, 0x0d, 0}), want: "function 0 changes a table"},
		"a table is read":               {module: one([]byte{0xfc, 0x10, 0}, drop)},
		"data are dropped":              {module: passive(one(dropData))},
		"data are copied":               {module: passive(one(initData))},
		"data are copied and dropped":   {module: dropping, want: "it drops data segment 0, which it needs again"},
		"a table is set once":           {module: setOnce, once: []string{"f0"}, want: "function 0 changes a table while the module initialises"},
		"the same once":                 {module: dropping, once: []string{"f0"}},
		"a reference in a global":       {module: reference, want: "it sets global 0, which is no number"},
		"a reference that never is set": {module: unused},
	} {
		r := rewritten(t, tc.module.bytes(), rewrite.Options{Once: tc.once})
		if r.Unrestorable != tc.want {
			t.Errorf("%s: %q, want %q", name, r.Unrestorable, tc.want)
		}
		if err := validate(interpreter(), r.Module); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGlobals(t *testing.T) {
	t.Parallel()
	a := one(i32(5), []byte{byte(module.GlobalSet), 0}, []byte{0x44, 0, 0, 0, 0, 0, 0, 0, 0x40, byte(module.GlobalSet), 3})
	a.globals = []byte{module.I32, module.I64, module.I32, module.F64}
	r := rewritten(t, a.bytes(), rewrite.Options{})
	want := []rewrite.Global{{Export: "jobhost:global:0", Type: module.I32}, {Export: "jobhost:global:3", Type: module.F64}}
	if !slices.Equal(r.Globals, want) {
		t.Fatalf("the globals are %v, want %v", r.Globals, want)
	}
	g, err := open(compiler(), nil, r)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	before := []uint64{g.global(want[0].Export).Get(), g.global(want[1].Export).Get()}
	if _, err := g.ExportedFunction("f0").Call(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := g.state()
	for i, global := range want {
		g.global(global.Export).Set(before[i])
	}
	if after == g.state() || g.global("g0").Get() != 0 || g.global("g3").Get() != 0 {
		t.Errorf("the globals were not put back: %s", g.state())
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	a := one()
	a.data, a.offsets = [][]byte{[]byte("hello"), []byte("later"), []byte("J")}, []int{100, -1, 100}
	for name, tc := range map[string]struct {
		code []byte
		keep bool
		want int  // segments taken out
		left bool // the passive one is there
	}{
		"all go":       {want: 2},
		"indices stay": {code: concat(i32(0), i32(0), i32(5), []byte{0xfc, 0x08, 1, 0}), want: 2, left: true},
		"kept":         {keep: true, left: true},
	} {
		a.functions[0].code = tc.code
		r := rewritten(t, a.bytes(), rewrite.Options{KeepData: tc.keep})
		if len(r.Data) != tc.want {
			t.Errorf("%s: %d segments were taken out, want %d", name, len(r.Data), tc.want)
		}
		if left := bytes.Contains(r.Module, []byte("later")); left != tc.left {
			t.Errorf("%s: the passive segment is there: %v", name, left)
		}
		g, err := open(compiler(), nil, r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(g.close)
		if b, _ := g.Memory().Read(100, 5); string(b) != "Jello" {
			t.Errorf("%s: the memory is %q", name, b)
		}
		if _, err := g.ExportedFunction("f0").Call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := g.Memory().Read(0, 5); tc.code != nil && string(b) != "later" {
			t.Errorf("%s: the copy is %q", name, b)
		}
	}
}

func TestStartIsCalledByTheHost(t *testing.T) {
	t.Parallel()
	a := one(i32(9), []byte{byte(module.GlobalSet), 0})
	a.globals, a.start = []byte{module.I32}, 0
	r := rewritten(t, a.bytes(), rewrite.Options{})
	if r.Start == "" {
		t.Fatal("the start function has no name")
	}
	g, err := open(compiler(), nil, r) // calls it
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if got := g.global("g0").Get(); got != 9 {
		t.Errorf("the start function left %d", got)
	}
}

// TestNames checks that traps still name functions, and that damaged names
// and other custom sections are left out.
func TestNames(t *testing.T) {
	t.Parallel()
	g, err := open(compiler(), nil, rewritten(t, guests.Outcomes, rewrite.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	_, err = g.ExportedFunction("trap").Call(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), ".trap(") {
		t.Errorf("the trap has no name: %v", err)
	}
	a := one()
	for name, custom := range map[string][]byte{
		"cut off":     concat(text("name"), []byte{1, 200}),
		"no such":     concat(text("name"), []byte{1, 4, 1, 99, 1, 'x'}),
		"twice":       concat(text("name"), []byte{1, 7, 2, 0, 1, 'x', 0, 1, 'y'}),
		"no UTF-8":    concat(text("name"), []byte{1, 4, 1, 0, 1, 0xff}),
		"out of turn": concat(text("name"), []byte{1, 1, 0, 0, 2, 1, 'x'}),
		"debug":       concat(text(".debug_info"), []byte("secret")),
	} {
		a.custom = section(module.SectionCustom, custom)
		r := rewritten(t, a.bytes(), rewrite.Options{})
		if bytes.Contains(r.Module, custom) {
			t.Errorf("%s: the section is still there", name)
		}
		if err := validate(interpreter(), r.Module); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	m, err := module.Read(one().bytes())
	if err != nil {
		t.Fatal(err)
	}
	m.Exports[0].Name = rewrite.Stop
	if _, err := rewrite.Rewrite(m, rewrite.Options{}); !errors.Is(err, rewrite.ErrName) {
		t.Errorf("the rewrite said %v", err)
	}
}

// TestOnlyWhatIsValidIsRewritten: what is added must not make valid what was
// not. Here a guest would set its own tick, call a helper, or have a type that
// only the rewrite adds.
func TestOnlyWhatIsValidIsRewritten(t *testing.T) {
	t.Parallel()
	for name, code := range map[string][]byte{
		"a global":   concat(i32(1<<30), []byte{byte(module.GlobalSet), 0}),
		"a function": call(2),
		"a type":     concat(i32(0), []byte{byte(module.CallIndirect), 100, 0}),
		"a local":    {byte(module.LocalGet), 1, 0x1a},
		"an operand": {0x1a},
		"its type":   concat(i32(1), []byte{0x50, 0x1a}),
	} {
		m, err := module.Read(one(code).bytes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rewrite.Rewrite(m, rewrite.Options{}); err == nil {
			t.Errorf("%s that the module doesn't have: it was rewritten", name)
		}
	}
}

// TestActiveSegmentsCanBeCopied keeps a habit of the engine, which doesn't
// drop active segments.
func TestActiveSegmentsCanBeCopied(t *testing.T) {
	t.Parallel()
	a := one(i32(0), i32(2), i32(3), []byte{0xfc, 0x08, 0, 0})
	a.data, a.offsets = [][]byte{[]byte("hello")}, []int{100}
	same(t, compiler(), a.bytes(), rewrite.Options{}, noBudget)
}
