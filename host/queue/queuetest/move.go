package queuetest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/record"
)

// RunMoved is for stores that are moved to others: Open returns one, and Reopen what became of it. Each of some checks makes
// random changes to a store and a model, lets it move, and asks the other store and the model everything that can be
// asked; then once more after further changes there.
func RunMoved(t *testing.T, h Harness, checks int) {
	done := 0
	rapid.Check(t, func(rt *rapid.T) {
		if done++; done > checks {
			return
		}
		s, m, step := h.Open(t), newModel(1), 0
		some := func(most int, name string) {
			for range rapid.IntRange(1, most).Draw(rt, name) {
				step++
				change(rt, s, m, epoch+record.Millis(step), fmt.Sprint("ops ", step))
			}
		}
		look := func() {
			checkReads(t, rt, s, m)
			checkEffects(t, rt, s, m, epoch+max(record.Millis(step), 6))
			checkObjects(t, rt, s, m)
			checkStates(t, rt, s, m)
		}
		some(6, "steps before")
		s = h.Reopen(t, s)
		look()
		some(3, "steps after")
		look()
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}
