package queue

import (
	"cmp"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// The fifo behaves like a slice, whatever the pushes and pops and wherever
// chunks end.
func TestFifoIsASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		var model []entry
		next := Key(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, chunkLen+3).Draw(t, "n")
			if rapid.Bool().Draw(t, "push") {
				for range n {
					e := entry{key: next}
					next++
					f.push(e)
					model = append(model, e)
				}
			} else {
				for range min(n, len(model)) {
					if got := f.peek(); got != model[0] {
						t.Fatalf("peek %v, want %v", got, model[0])
					}
					if got := f.pop(); got != model[0] {
						t.Fatalf("pop %v, want %v", got, model[0])
					}
					model = model[1:]
				}
			}
			if f.n != len(model) {
				t.Fatalf("n = %d, want %d", f.n, len(model))
			}
		}
		if got := slices.Collect(f.all()); !slices.Equal(got, model) {
			t.Fatalf("all yields %d entries, want %d", len(got), len(model))
		}
	})
}

func TestDelayHeapPopsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h delayHeap
		var model []entry
		for i := range rapid.IntRange(0, 200).Draw(t, "n") {
			e := entry{key: Key(i), readyAt: Millis(rapid.IntRange(0, 20).Draw(t, "at"))}
			h.push(e)
			model = append(model, e)
		}
		slices.SortFunc(model, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.readyAt, b.readyAt), cmp.Compare(a.key, b.key))
		})
		for i, want := range model {
			if got := h.pop(); got != want {
				t.Fatalf("pop %d = %v, want %v", i, got, want)
			}
		}
	})
}

func TestEntryStaysSmall(t *testing.T) {
	t.Parallel()
	// A million waiting tasks are held in memory; see the budget in docs/architecture.md.
	if size := unsafe.Sizeof(entry{}); size > 24 {
		t.Fatalf("an entry takes %d bytes, more than 24", size)
	}
}

func BenchmarkFifo(b *testing.B) {
	var f fifo
	for range 1000 {
		f.push(entry{})
	}
	for b.Loop() {
		f.push(entry{})
		f.pop()
	}
}
