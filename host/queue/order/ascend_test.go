package order

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/record"
)

// Near yields the tasks of a level from the oldest on, in whatever order they came and whatever was taken.
func TestNear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var waiting []Entry
		o := New(time.Minute, nil)
		group := rapid.SampledFrom([]record.Group{0, 7}).Draw(t, "group") // one for all tasks
		for i, ready := range rapid.SliceOfN(rapid.IntRange(0, 50), 0, 300).Draw(t, "ready") {
			e := Entry{Key: record.Key(i + 1), ReadyAt: o.Now() - record.Millis(ready)}
			o.Push(e, Traits{Group: group})
			waiting = append(waiting, e)
			if rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				choice, _ := o.Next()
				taken := o.Take(choice)
				if group != 0 {
					o.Leave(taken.Group)
				}
				waiting = slices.DeleteFunc(waiting, func(e Entry) bool { return e.Key == taken.Key })
			}
		}
		slices.SortFunc(waiting, byAge)
		want := waiting[:rapid.IntRange(0, len(waiting)).Draw(t, "wanted")]
		var got []Entry
		for e := range o.Near(0, len(waiting)) {
			if len(got) == len(want) {
				break
			}
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
