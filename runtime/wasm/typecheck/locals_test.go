package typecheck_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/typecheck"
)

// declare declares locals of a type, in groups of some.
func declare(groups, each int, t byte) []byte {
	b := module.AppendU32(nil, uint32(groups))
	for range groups {
		b = append(module.AppendU32(b, uint32(each)), t)
	}
	return b
}

// withLocals is a module with a function (i32) → () that has these locals.
func withLocals(t *testing.T, locals, code []byte) *module.Module {
	t.Helper()
	m := &module.Module{
		Start: -1, DataCount: -1, Functions: []uint32{0},
		Types: []module.FuncType{{Params: []byte{module.I32}}},
	}
	wasm, err := m.Encode(func(b []byte, _ int) ([]byte, error) {
		return append(append(append(b, locals...), code...), byte(module.End)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := module.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestEmptyGroupsOfLocals: groups may be empty.
func TestEmptyGroupsOfLocals(t *testing.T) {
	m := withLocals(t, []byte{5, 0, module.F32, 2, module.I64, 0, module.F32, 0, module.V128, 1, module.F64}, nil)
	c, err := typecheck.New(m)
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(0)
	for i, want := range []byte{module.I32, module.I64, module.I64, module.F64} {
		if got, ok := c.Local(uint64(i)); !ok || got != want {
			t.Errorf("local %d is %#x, %t", i, got, ok)
		}
	}
	for _, index := range []uint64{4, 1<<32 - 1} {
		if _, ok := c.Local(index); ok {
			t.Errorf("there is a local %d", index)
		}
	}
}

// TestManyGroupsOfLocals: a module chooses how many groups there are, and how
// often the last of them is named.
func TestManyGroupsOfLocals(t *testing.T) {
	const locals = 9990
	last := module.AppendU32([]byte{byte(module.LocalSet)}, locals)
	code := append([]byte{byte(module.Unreachable)}, bytes.Repeat(last, 50_000)...)
	took := func(groups int) time.Duration {
		m := withLocals(t, declare(groups, locals/groups, module.I64), code)
		best := time.Hour
		for range 3 {
			began := time.Now()
			if err := check(m, nil); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if one, many := took(1), took(locals); many > 20*one {
		t.Errorf("%v in one group, %v in %d", one, many, locals)
	}
}
