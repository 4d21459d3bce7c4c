package scope_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// A supervisor tells a fault from a cancellation, and a scope that just ended from
// both.
func ExampleScope_FaultOp() {
	end := func(s *scope.Scope) string {
		text, _ := op.PerformRaw(op.Choice(
			op.Wrap(s.FaultOp(), func(err error) (string, error) { return "fault: " + err.Error(), nil }),
			op.Wrap(s.CancelOp(), func(c *scope.Cancelled) (string, error) { return "cancelled: " + c.Reason.Error(), nil }),
		))
		return text
	}
	one, two := scope.New(context.Background(), "one"), scope.New(context.Background(), "two")
	_ = one.Go("worker", func(context.Context) error { return errors.New("disk on fire") })
	two.Cancel(errors.New("not needed"))
	fmt.Println(end(one))
	fmt.Println(end(two))
	_, _ = one.Join(context.Background())
	_, _ = two.Join(context.Background())
	// Output:
	// fault: worker: disk on fire
	// cancelled: not needed
}

// Who offers work to a scope stops when that takes none any more.
func ExampleScope_CloseOp() {
	s := scope.New(context.Background(), "host")
	work := op.NewChan[string](1)
	next := op.Choice(work.Recv(), op.Wrap(s.CloseOp(), func(why error) (string, error) { return "", why }))

	_, _ = op.PerformRaw(work.Send("one"))
	fmt.Println(op.PerformRaw(next))
	s.Close(errors.New("maintenance"))
	_, err := op.PerformRaw(next)
	fmt.Println(err)
	_, _ = s.Join(context.Background())
	// Output:
	// one <nil>
	// scope host is closed: maintenance
}

// A lease that is given back early, or else when the scope ends.
func ExampleScope_Attach() {
	s := scope.New(context.Background(), "host")
	release := func(name string) func() {
		detach, _ := s.Attach(func(bool, scope.Status, error) error {
			fmt.Println("release", name, "at the end")
			return nil
		})
		return func() {
			if detach() {
				fmt.Println("release", name, "early")
			}
		}
	}
	first, second := release("first"), release("second")
	first()
	_, _ = s.Join(context.Background())
	second() // too late
	// Output:
	// release first early
	// release second at the end
}
