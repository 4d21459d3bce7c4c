package record

import (
	"testing"

	"github.com/jobhost/jobhost"
)

// A group's number says what its limit is, and whose.
func TestGroupOfJob(t *testing.T) {
	t.Parallel()
	breaker := &jobhost.BreakerPolicy{Key: "k"}
	for _, tt := range []struct {
		name  string
		job   JobSpec
		limit int // where the worker's per key is 7
		same  Group
	}{
		{"plain", JobSpec{ID: "a", Tasks: 5}, 0, 0},
		{"key", JobSpec{ID: "a", ConcurrencyKey: "k"}, 7, GroupOf("k")},
		{"parallel", JobSpec{ID: "a", Tasks: 5, MaxParallel: 3}, 3, 0},
		{"no bound, since all may run", JobSpec{ID: "a", Tasks: 5, MaxParallel: 5}, 0, 0},
		{"the largest bound", JobSpec{ID: "a", Tasks: 10_000, MaxParallel: 9_999}, 9_999, 0},
		{"a bound that doesn't fit", JobSpec{ID: "a", Tasks: 100_000, MaxParallel: 99_999}, mostLimit, 0},
		{"breaker", JobSpec{ID: "a", Tasks: 5, Breaker: breaker}, 0, (&JobSpec{ID: "b", Breaker: breaker}).Group()},
		{"breaker and parallel", JobSpec{ID: "a", Tasks: 5, MaxParallel: 2, Breaker: breaker}, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.job.Group()
			if n := got.Limit(7); got != 0 && n != tt.limit || got == 0 && tt.limit != 0 {
				t.Errorf("group %d has the limit %d, want %d", got, n, tt.limit)
			}
			if tt.same != 0 && got != tt.same {
				t.Errorf("group %d, want %d", got, tt.same)
			}
			other := tt.job
			if other.ID = "b"; tt.limit > 0 && tt.same == 0 && other.Group() == got {
				t.Error("another job has the same group")
			}
		})
	}
}
