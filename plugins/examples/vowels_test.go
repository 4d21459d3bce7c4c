// Package examples_test tests the examples that are not in Go themselves.
package examples_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

func TestVowels(t *testing.T) {
	t.Parallel()
	module := guesttest.Read(t, "vowels/vowels.wasm")
	if len(module) > 2<<10 {
		t.Errorf("vowels.wasm has %d bytes", len(module))
	}
	g := guesttest.Start(t, module)
	for _, c := range []struct {
		name, input string
		want        int
	}{
		{"empty", "", 0},
		{"letters", "aeiouAEIOU bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ", 10},
		{"neighbours of letters", "@[`{!\x01\x05\x0f\x15\x00\xff", 0},
		{"not ASCII", "Äé naïve", 2},
		{"larger than a page", string(bytes.Repeat([]byte("xo"), 100_000)), 100_000},
		{"small again", "o", 1},
	} {
		got := g.Run([]byte(c.input))
		if want := fmt.Sprintf(`{"count": %d}`, c.want); string(got.Output) != want {
			t.Errorf("%s: %s, not %s", c.name, got.Output, want)
		}
	}
	if size := g.MemorySize(); size > 5<<16 {
		t.Errorf("the memory has %d bytes", size)
	}
	// A request for impossible room is a trap, not an access outside the memory.
	g.Attempt = &guesttest.Attempt{Input: make([]byte, 65<<20)}
	if err := g.Call("jh_run"); err == nil {
		t.Error("65 MiB fit into 64")
	}
}
