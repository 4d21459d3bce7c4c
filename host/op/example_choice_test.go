package op_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/op"
)

// A reply or a timeout, whichever comes first. The choice is a value: it can be
// built in one place and performed in another, many times.
func ExampleChoice() {
	errSlow := errors.New("no reply within a millisecond")
	replies := op.NewChan[string](1)
	reply := op.Choice(
		replies.Recv(),
		op.Wrap(op.After(time.Millisecond), func(time.Time) (string, error) { return "", errSlow }),
	)

	ctx := context.Background()
	fmt.Println(op.Perform(ctx, reply))
	_, _, _ = op.TryPerform(replies.Send("pong"))
	fmt.Println(op.Perform(ctx, reply))
	// Output:
	//  no reply within a millisecond
	// pong <nil>
}

func ExampleNamedChoice() {
	var shutdown op.Signal
	jobs := op.NewChan[string](1)
	next := op.NamedChoice(map[string]op.Op[string]{
		"job":  jobs.Recv(),
		"stop": op.Wrap(shutdown.Wait(), func(struct{}) (string, error) { return "bye", nil }),
	})

	_, _, _ = op.TryPerform(jobs.Send("resize"))
	got, _ := op.PerformRaw(next)
	fmt.Println(got.Tag, got.Value)
	shutdown.Fire()
	got, _ = op.PerformRaw(next)
	fmt.Println(got.Tag, got.Value)
	// Output:
	// job resize
	// stop bye
}
