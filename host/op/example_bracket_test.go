package op_test

import (
	"fmt"

	"github.com/jobhost/jobhost/host/op"
)

// A bracket holds something for as long as its op is on offer, whatever the
// outcome.
func ExampleBracket() {
	hold := func(slot int, use op.Op[string]) op.Op[string] {
		return op.Bracket(
			func() (int, error) { return slot, nil },
			func(slot int, aborted bool) { fmt.Printf("slot %d free, aborted: %t\n", slot, aborted) },
			func(int) op.Op[string] { return use },
		)
	}
	v, _ := op.PerformRaw(op.Choice(
		hold(1, op.Never[string]()),
		hold(2, op.Always("done")),
	))
	fmt.Println(v)
	// Output:
	// slot 1 free, aborted: true
	// slot 2 free, aborted: false
	// done
}

// A client that goes elsewhere lets the kitchen know.
func ExampleWithNack() {
	told := make(chan string)
	order := op.WithNack(func(nack op.Op[struct{}]) op.Op[string] {
		var cooked op.Signal // never, today
		plates := op.NewChan[string](0)
		go func() {
			ready, _ := op.PerformRaw(op.BooleanChoice(cooked.Wait(), nack))
			if !ready.Tag {
				told <- "order withdrawn"
				return
			}
			_, _ = op.PerformRaw(op.Choice(plates.Send("soup"), nack))
		}()
		return plates.Recv()
	})
	meal, _ := op.PerformRaw(op.Choice(order, op.Always("bread")))
	fmt.Println(meal)
	fmt.Println(<-told)
	// Output:
	// bread
	// order withdrawn
}
