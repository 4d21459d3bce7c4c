package rate

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var r Rate
	if r.Bounded() || !r.Next().IsZero() {
		t.Errorf("the zero rate has a bound: %v", r.Next())
	}
	r.Set(jobhost.Rate{Count: 10, Per: time.Second}, 3, now)
	for range 3 { // the burst
		if r.Next().After(now) {
			t.Fatalf("the next is at %v", r.Next())
		}
		r.Take(now)
	}
	if got := r.Next().Sub(now); got != 100*time.Millisecond {
		t.Errorf("the next after a burst is %v later", got)
	}
	r.GiveBack()
	if got := r.Next().Sub(now); got != 0 {
		t.Errorf("the next after one that was given back is %v later", got)
	}
	r.Take(now)
	r.Set(jobhost.Rate{Count: 1000, Per: time.Second}, 3, now)
	if got := r.Next().Sub(now); got != time.Millisecond {
		t.Errorf("the next at a higher rate is %v later", got)
	}
	r.Set(jobhost.Rate{}, 0, now)
	if r.Bounded() {
		t.Error("a bound that was taken away holds")
	}
}

// However they come, no more begin within any period than its share and the burst.
func TestRateHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		per := time.Duration(rapid.IntRange(1, 1000).Draw(t, "per")) * time.Millisecond
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		start := time.Unix(1000, 0)
		now := start
		var r Rate
		r.Set(jobhost.Rate{Count: 1, Per: per}, burst, now)
		began := 0
		for range rapid.IntRange(1, 50).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			if r.Next().After(now) {
				continue
			}
			r.Take(now)
			began++
			if most := burst + int(now.Sub(start)/per); began > most {
				t.Fatalf("%d have begun after %v, more than %d", began, now.Sub(start), most)
			}
		}
	})
}
