package budget_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/internal/budget"
)

func TestTake(t *testing.T) {
	t.Parallel()
	b := budget.Budget{Limit: 10}
	for _, step := range []struct {
		n    int64
		want bool
		used int64
	}{{7, true, 7}, {4, false, 7}, {3, true, 10}, {1, false, 10}, {0, true, 10}} {
		if got := b.Take(step.n); got != step.want || b.Used() != step.used {
			t.Errorf("Take(%d) is %v with %d used, want %v with %d", step.n, got, b.Used(), step.want, step.used)
		}
	}
	b.Free(10)
	if !b.Take(10) {
		t.Error("what was given back can't be taken")
	}
}

// TestHammer: together they never hold more than there is, and nothing stays taken.
func TestHammer(t *testing.T) {
	t.Parallel()
	const limit = 5
	b := budget.Budget{Limit: limit}
	var held atomic.Int64
	var all sync.WaitGroup
	for n := range int64(8) {
		all.Go(func() {
			for range 2000 {
				if !b.Take(n) {
					continue
				}
				if h := held.Add(n); h > limit {
					t.Errorf("%d of %d are held", h, limit)
				}
				held.Add(-n)
				b.Free(n)
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d are still taken", b.Used())
	}
}
