package rig_test

import "testing"

// TestContain: modules that are not damaged run with a harness, so that what it
// shows of those that are means something.
func TestContain(t *testing.T) {
	t.Parallel()
	w := newMutants(t.Context()).(*containment)
	defer func() {
		if err := w.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	sum := map[string]int{}
	const total = 60
	for n := range total {
		b, err := w.originals.original(randomOf(n), n)
		if err != nil {
			t.Fatal(err)
		}
		m := &mutant{report: report{Count: sum}}
		if err := m.contain(t.Context(), w, b); err != nil {
			t.Errorf("module %d: %v", n, err)
		}
	}
	if sum["loaded"] < total*9/10 || sum["looks"] < 2*total {
		t.Errorf("too little was run: %v", sum)
	}
}
