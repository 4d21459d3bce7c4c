package rig_test

import (
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestEachOpcode runs a module for each instruction that there is in all forms,
// with operands at the edge of something and values around it that must stay as
// they are.
func TestEachOpcode(t *testing.T) {
	t.Parallel()
	bench := rig.NewBench(t.Context())
	defer bench.Close(t.Context())
	calls := 0
	all := rig.Opcodes()
	for _, op := range all {
		name := module.Describe(op).Name
		wasm, err := rig.Single(op)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o, err := bench.Run(t.Context(), wasm, uint64(op))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, rig.Text(wasm))
			continue
		}
		if o.Rewritten != "" || o.Plain != "" {
			t.Errorf("%s: compiled: %s; rewritten: %s\n%s", name, o.Plain, o.Rewritten, rig.Text(wasm))
		}
		calls += o.Calls
	}
	t.Logf("%d instructions in %d calls", len(all), calls)
	if len(all) != 437 || calls < 8000 {
		t.Errorf("%d instructions in %d calls are too few", len(all), calls)
	}
}
