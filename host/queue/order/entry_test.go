package order

import (
	"cmp"
	"iter"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/record"
)

// The fifo behaves like a slice, whatever the pushes and pops and wherever
// chunks end.
func TestFifoIsASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		var model []Entry
		next := record.Key(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, chunkLen+3).Draw(t, "n")
			if rapid.Bool().Draw(t, "push") {
				for range n {
					e := Entry{Key: next}
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

func TestHeapPopsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h entryHeap
		var model []Entry
		for i := range rapid.IntRange(0, 200).Draw(t, "n") {
			e := Entry{Key: record.Key(i), ReadyAt: record.Millis(rapid.IntRange(0, 20).Draw(t, "at"))}
			h.push(e)
			model = append(model, e)
		}
		slices.SortFunc(model, byAge)
		for i, want := range model {
			if got := h.pop(); got != want {
				t.Fatalf("pop %d = %v, want %v", i, got, want)
			}
		}
	})
}

// A level gives its entries in their order, in whatever order they came.
func TestLevelPopsTheOldest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var v level
		var model []Entry
		for i := range rapid.IntRange(0, 200).Draw(t, "n") {
			if v.len() != len(model) {
				t.Fatalf("len %d, want %d", v.len(), len(model))
			}
			if len(model) > 0 && rapid.Bool().Draw(t, "pop") {
				slices.SortFunc(model, byAge)
				if head, got := v.peek(), v.pop(); got != model[0] || head != got {
					t.Fatalf("peek %v, pop %v, want %v", head, got, model[0])
				}
				model = model[1:]
				continue
			}
			e := Entry{Key: record.Key(i), ReadyAt: record.Millis(i/4 - rapid.SampledFrom([]int{0, 0, 0, 50}).Draw(t, "late"))}
			v.push(e)
			model = append(model, e)
		}
	})
}

func byAge(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.ReadyAt, b.ReadyAt), cmp.Compare(a.Key, b.Key))
}

// A view shows what was there when it was taken, whatever happens afterwards.
func TestViewsDoNotChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		var h entryHeap
		type seen struct {
			view iter.Seq[Entry]
			want []Entry
		}
		var views []seen
		next := record.Key(1)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 2*pageLen).Draw(t, "pushes") {
				e := Entry{Key: next, ReadyAt: record.Millis(next * 7919 % 1009)}
				next++
				f.push(e)
				h.push(e)
			}
			if rapid.Bool().Draw(t, "look") {
				views = append(views, seen{f.view(), slices.Collect(f.all())}, seen{h.view(), slices.Collect(h.all())})
			}
			for range min(rapid.IntRange(0, 3*pageLen).Draw(t, "pops"), f.n) {
				f.pop()
				h.pop()
			}
		}
		for i, v := range views {
			if got := slices.Collect(v.view); !slices.Equal(got, v.want) {
				t.Fatalf("view %d has changed", i)
			}
		}
	})
}

func TestEntryStaysSmall(t *testing.T) {
	t.Parallel()
	// A million waiting tasks are held in memory; see the budget in docs/architecture.md.
	if size := unsafe.Sizeof(Entry{}); size > 24 {
		t.Fatalf("an entry takes %d bytes, more than 24", size)
	}
}

func BenchmarkFifo(b *testing.B) {
	var f fifo
	for range 1000 {
		f.push(Entry{})
	}
	for b.Loop() {
		f.push(Entry{})
		f.pop()
	}
}

func BenchmarkHeap(b *testing.B) {
	var h entryHeap
	for i := range 1000 {
		h.push(Entry{ReadyAt: record.Millis(i * 7919 % 1009)})
	}
	for i := 0; b.Loop(); i++ {
		h.push(Entry{ReadyAt: record.Millis(i * 7919 % 1009)})
		h.pop()
	}
}
