package rig_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestReduce cuts all but what makes a program fail.
func TestReduce(t *testing.T) {
	t.Parallel()
	const nodes = 1000
	needed := []int{0, 17, 18, 640, nodes - 1}
	tries := 0
	cut := rig.Reduce(nodes, func(cut map[int]bool) bool {
		tries++
		for _, n := range needed {
			if cut[n] {
				return false
			}
		}
		return true
	})
	if len(cut) != nodes-len(needed) {
		t.Errorf("%d of %d were cut", len(cut), nodes-len(needed))
	}
	if tries > 3*nodes {
		t.Errorf("it took %d tries", tries)
	}
}

// TestCut shows that programs are the same for each seed, and valid with any cut.
func TestCut(t *testing.T) {
	t.Parallel()
	for i, p := range rig.Profiles() {
		seed := uint64(i)
		program, err := rig.Generate(seed, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := rig.Generate(seed, p, map[int]bool{}); err != nil || !bytes.Equal(again.Wasm, program.Wasm) {
			t.Errorf("%s: the same seed made another program (%v)", p.Name, err)
		}
		rng := rand.New(rand.NewPCG(seed, 6))
		for range 20 {
			cut := map[int]bool{}
			for range 1 + rng.IntN(program.Nodes) {
				cut[rng.IntN(program.Nodes)] = true
			}
			smaller, err := rig.Generate(seed, p, cut)
			if err != nil {
				t.Fatal(err)
			}
			if smaller.Nodes != program.Nodes || len(smaller.Wasm) > len(program.Wasm) {
				t.Errorf("%s: %d nodes and %d bytes became %d and %d", p.Name, program.Nodes, len(program.Wasm), smaller.Nodes, len(smaller.Wasm))
			}
			if _, err := rig.Check(smaller.Wasm); err != nil {
				t.Errorf("%s: a cut made it invalid: %v\n%s", p.Name, err, rig.Text(smaller.Wasm))
			}
		}
	}
}
