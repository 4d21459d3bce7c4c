package preflight

import (
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
)

// TestHeights follows the operand stack through valid code: where a block
// ends without a branch, it must be as high as the block's type says.
func TestHeights(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{guests.Outcomes, guests.Exit, guests.Init, guests.InitTrap} {
		m, err := module.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		w := newWalker(m)
		for f := range m.Bodies {
			w.start(f)
			code := m.Instructions(f)
			for code.Next() {
				if top := w.frames[len(w.frames)-1]; code.Op == module.End && !w.dead && !top.dead && w.height != top.height+top.results {
					t.Fatalf("function %d at %d: %d operands instead of %d", f, code.Start, w.height, top.height+top.results)
				}
				w.step(&code.Instruction)
			}
			if err := code.Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
