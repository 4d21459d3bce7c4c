package order

import (
	"fmt"
	"iter"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/record"
)

// The tasks of a group come in their order, in whatever order they went in, and
// a view shows what was there when it was taken.
func TestGroupsPopTheOldest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := newGroups(0, func(record.Group) {})
		model := map[record.Group][]Entry{}
		type seen struct {
			view iter.Seq[Entry]
			want []Entry
		}
		var views []seen
		for i := range rapid.IntRange(1, 400).Draw(t, "n") {
			id := record.Group(rapid.IntRange(1, 3).Draw(t, "group"))
			if rapid.IntRange(0, 20).Draw(t, "look") == 0 {
				views = append(views, seen{g.view(func(ref) bool { return true }), allOf(model)})
			}
			if len(model[id]) > 0 && rapid.Bool().Draw(t, "pop") {
				slices.SortFunc(model[id], byAge)
				r := g.refs[id]
				if got := g.pop(r, 2); got != model[id][0] {
					t.Fatalf("pop %v, want %v", got, model[id][0])
				}
				model[id] = model[id][1:]
				g.drop(r)
				continue
			}
			e := Entry{Key: record.Key(i + 1), Level: 2, ReadyAt: record.Millis(i/4 - rapid.SampledFrom([]int{0, 0, 0, 50}).Draw(t, "late"))}
			g.push(e, id)
			model[id] = append(model[id], e)
		}
		for i, v := range views {
			if got := sorted(slices.Collect(v.view)); !slices.Equal(got, v.want) {
				t.Fatalf("view %d has changed", i)
			}
		}
		if got := sorted(slices.Collect(g.view(func(ref) bool { return true }))); !slices.Equal(got, allOf(model)) {
			t.Fatalf("%d tasks are left, want %d", len(got), len(allOf(model)))
		}
	})
}

func allOf(model map[record.Group][]Entry) []Entry {
	var all []Entry
	for _, some := range model {
		all = append(all, some...)
	}
	return sorted(all)
}

func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, byAge)
	return entries
}

// A ring behaves like a slice.
func TestRingIsASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var model []ref
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch {
			case len(model) > 0 && rapid.Bool().Draw(t, "pop"):
				if got := r.pop(); got != model[0] {
					t.Fatalf("pop %d, want %d", got, model[0])
				}
				model = model[1:]
			case len(model) > 0 && rapid.Bool().Draw(t, "rotate"):
				n := rapid.IntRange(0, len(model)).Draw(t, "n")
				r.rotate(n)
				model = append(slices.Clone(model[n:]), model[:n]...)
			default:
				r.push(ref(i))
				model = append(model, ref(i))
			}
			for i, want := range model {
				if got := r.at(i); got != want || r.n != len(model) {
					t.Fatalf("place %d of %d has %d, want %v", i, r.n, got, model)
				}
			}
		}
	})
}

// The budget of docs/architecture.md holds for tasks with keys, few or many, and
// what is done with them gives the memory back.
func TestTasksWithKeysStaySmall(t *testing.T) { //nolint:paralleltest // it measures memory

	const budget = 150
	for _, tt := range []struct{ keys, tasks int }{{10, 50_000}, {300_000, 300_000}} {
		t.Run(fmt.Sprint("keys=", tt.keys), func(t *testing.T) {
			before := heapBytes()
			o := New(time.Minute, nil)
			for i := range tt.tasks {
				o.Push(Entry{Key: record.Key(i + 1), ReadyAt: o.Now()}, Traits{Group: record.Group(1 + i%tt.keys)})
			}
			if each := (heapBytes() - before) / uint64(tt.tasks); each > budget {
				t.Errorf("a task takes %d bytes, more than %d", each, budget)
			}
			for range tt.tasks {
				next, ok := o.Next()
				if !ok {
					t.Fatal("there is no next task")
				}
				o.Leave(o.Take(next).Group)
			}
			if o.groups != nil || o.AnyReady() {
				t.Error("groups are left")
			}
		})
	}
}

func heapBytes() uint64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkChooseByKey measures a choice among the tasks of so many keys, all
// of one priority, and among keys of which half have risen by one.
func BenchmarkChooseByKey(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000} {
		for _, mixed := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/mixed=%t", keys, mixed), func(b *testing.B) {
				o := New(time.Minute, nil)
				push := func(i int) {
					e := Entry{Key: record.Key(i + 1), ReadyAt: o.Now(), Level: 3}
					if mixed && i%2 == 0 {
						e.ReadyAt -= record.Millis(90 * time.Second / time.Millisecond)
					}
					o.Push(e, Traits{Group: record.GroupOf(fmt.Sprint(i % keys))})
				}
				for i := range 2 * keys {
					push(i)
				}
				for i := 2 * keys; b.Loop(); i++ {
					next, _ := o.Next()
					o.Leave(o.Take(next).Group)
					push(i)
				}
			})
		}
	}
}
