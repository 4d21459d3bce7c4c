package op_test

import (
	"fmt"
	"sync"

	"github.com/jobhost/jobhost/host/op"
)

// Door is a primitive written with [op.New]: passing is an op that is ready while
// the door is open.
type Door struct {
	mu      sync.Mutex // protects the fields below
	open    bool
	waiters op.WaitList[string]
}

// Pass returns an op that is ready while the door is open.
func (d *Door) Pass(who string) op.Op[string] {
	return op.New(
		func() (string, bool, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return who, d.open, nil
		},
		func(w *op.Waiter[string]) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.open { // since the probe
				w.Complete(who, nil)
				return
			}
			d.waiters.Wait(w, &d.mu)
		},
	)
}

// Set opens or closes the door.
func (d *Door) Set(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open = open; open {
		d.waiters.CompleteAll("a waiter", nil)
	}
}

func ExampleNew() {
	var door Door
	knock := op.OrElse(door.Pass("Ada"), func() (string, error) { return "no one", nil })
	for _, open := range []bool{false, true} {
		door.Set(open)
		who, _ := op.PerformRaw(knock)
		fmt.Println(who, "has passed")
	}
	// Output:
	// no one has passed
	// Ada has passed
}
