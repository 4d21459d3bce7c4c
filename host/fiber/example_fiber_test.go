package fiber_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// A fiber gets messages and publishes others until it is interrupted.
func Example_fiber() {
	ctx := context.Background()
	host := scope.New(ctx, "host")
	fibers, err := fiber.New(fiber.Config{Scope: host})
	if err != nil {
		fmt.Println(err)
		return
	}
	shout := func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		for {
			message, err := op.Perform(ctx, f.Recv())
			if err != nil {
				return nil, nil //nolint:nilerr // no more input
			}
			_ = f.Emit([]byte(strings.ToUpper(string(message)) + "!"))
		}
	}
	_, err = fibers.Start(ctx, jobhost.FiberSpec{ID: "chat-1", Worker: "shout"}, shout, func(end jobhost.Fiber) error {
		fmt.Println(end.ID, "is", end.Status)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	answers, err := fibers.Subscribe(jobhost.FiberQuery{ID: "chat-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answers.Close()
	for _, word := range []string{"hello", "fiber"} {
		if err := fibers.SendFiber(ctx, "chat-1", []byte(word), true); err != nil {
			fmt.Println(err)
		}
		answer, _ := answers.Next(ctx)
		fmt.Println(answer.Seq, string(answer.Value.Data))
	}

	_, _ = fibers.InterruptFiber(ctx, "chat-1")
	_, err = answers.Next(ctx)
	fmt.Println(errors.Is(err, jobhost.ErrFiberEnded), "-", err)
	_, _ = fibers.Wait(ctx, "chat-1")
	fmt.Println(fibers.SendFiber(ctx, "chat-1", []byte("still there?"), false))

	host.Cancel(nil)
	_, _ = host.Join(ctx)
	// Output:
	// 1 HELLO!
	// 2 FIBER!
	// chat-1 is killed
	// true - the fiber was killed: it was interrupted: the fiber has ended
	// the fiber chat-1 has ended (killed): the fiber has ended
}
