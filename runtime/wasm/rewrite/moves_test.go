package rewrite_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestMovedValuesCost: a branch costs as much more as there are values that it
// takes along, each of which may have to be moved. Its own two bytes tell nothing
// of them.
func TestMovedValuesCost(t *testing.T) {
	t.Parallel()
	const passes = 100
	for name, branch := range map[string][]byte{
		"br":       rig.In(module.Br, 0),
		"br_if":    slices.Concat(argument, rig.In(module.BrIf, 0)),
		"br_table": slices.Concat(argument, rig.In(module.BrTable, 0, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cost := func(values int) int64 {
				g, err := open(compiler(), nil, rewritten(t, movingValues(t, values, branch), rewrite.Options{}))
				if err != nil {
					t.Fatal(err)
				}
				defer g.close()
				g.allot(0)
				if _, err := g.ExportedFunction("f0").Call(t.Context(), passes); err != nil {
					t.Fatal(err)
				}
				return g.used()
			}
			const most, moved, unit = 900, 8, 256 // bytes for each value, and for a unit of fuel
			none, few, many := cost(1), cost(most/3), cost(most)
			if many-none < passes*most*moved/unit || few-none < passes*most/3*moved/unit || few >= many {
				t.Errorf("%d passes cost %d with 1 value, %d with %d, %d with %d", passes, none, few, most/3, many, most)
			}
		})
	}
}

// movingValues is a module whose f0 passes so often through a loop as its argument
// says, in which a branch leads to the end of a block with all values of the block.
func movingValues(t *testing.T, values int, branch []byte) []byte {
	t.Helper()
	all := bytes.Repeat([]byte{module.I64}, values)
	const typeOfBlock = 1
	code := slices.Concat(rig.In(module.Loop, 0x40),
		bytes.Repeat(rig.In(module.I64Const, 7), values),
		[]byte{byte(module.Block), typeOfBlock}, branch, end, bytes.Repeat(drop, values),
		lessOne, rig.In(module.LocalTee, 0), rig.In(module.BrIf, 0), end)
	s := rig.Sketch{Functions: []rig.Routine{
		{Params: []byte{module.I32}, Code: code},
		{Params: all, Results: all, Code: rig.In(module.Unreachable)}, // for its type
	}}
	wasm, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
