package op_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/op"
)

// A permit, or a limit of time: who gives up has taken none.
func ExampleSemaphore() {
	permits := op.NewSemaphore(1)
	soon := op.BooleanChoice(
		permits.Acquire(),
		op.Wrap(op.After(time.Millisecond), func(time.Time) (struct{}, error) { return struct{}{}, nil }),
	)
	for range 2 {
		got, _ := op.PerformRaw(soon)
		fmt.Println("permit:", got.Tag)
	}
	permits.Release()
	got, _ := op.PerformRaw(soon)
	fmt.Println("permit:", got.Tag)
	// Output:
	// permit: true
	// permit: false
	// permit: true
}

func ExampleWaitGroup() {
	var requests op.WaitGroup
	requests.Add(1)
	idle := op.OrElse(
		op.Wrap(requests.Wait(), func(struct{}) (string, error) { return "idle", nil }),
		func() (string, error) { return "busy", nil },
	)
	for range 2 {
		fmt.Println(op.PerformRaw(idle))
		if requests.Count() > 0 {
			requests.Done()
		}
	}
	// Output:
	// busy <nil>
	// idle <nil>
}

// A mailbox for what only counts while it is new.
func ExampleMailbox() {
	positions := op.NewMailbox[int](2, op.DropOldest)
	for i := range 5 {
		_, _ = op.PerformRaw(positions.Send(i))
	}
	positions.Close()
	for {
		v, err := op.PerformRaw(positions.Recv())
		if err != nil {
			fmt.Println(err, "with", positions.Lost(), "lost")
			return
		}
		fmt.Println(v)
	}
	// Output:
	// 3
	// 4
	// channel closed with 3 lost
}

// Changes that come while a reader is busy are one change for it.
func ExamplePulse() {
	var changed op.Pulse
	changed.Beat()
	changed.Beat()
	seen, err := op.Perform(context.Background(), changed.Changed(0))
	fmt.Println(seen, err)
	_, ok, _ := op.TryPerform(changed.Changed(seen))
	fmt.Println("more:", ok)
	// Output:
	// 2 <nil>
	// more: false
}
