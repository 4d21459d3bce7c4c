package scope_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// A boundary: the error of one goroutine stops the others, everything is cleaned
// up, and the caller gets the outcome.
func ExampleRun() {
	host := scope.New(context.Background(), "host")
	r := scope.Run(host, "task", func(_ context.Context, s *scope.Scope) (string, error) {
		err := s.Finally(func(aborted bool, status scope.Status, _ error) error {
			fmt.Println("clean up:", aborted, status)
			return nil
		})
		if err != nil {
			return "", err
		}
		if err := s.Go("watch", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); err != nil {
			return "", err
		}
		return "", errors.New("no such file")
	})
	fmt.Println(r.Status, r.Err())

	all, _ := host.Join(context.Background())
	fmt.Println(all.Status, "with", len(all.Children), "child")
	// Output:
	// clean up: true failed
	// failed no such file
	// ok with 1 child
}

// A boundary with a time limit is a choice. When it loses, nothing of it is left
// when the choice returns.
func ExampleRunOp() {
	host := scope.New(context.Background(), "host")
	task := scope.RunOp(host, "task", func(ctx context.Context, _ *scope.Scope) (string, error) {
		<-ctx.Done()
		fmt.Println("told:", context.Cause(ctx))
		return "", ctx.Err()
	})
	timeout := op.Wrap(op.After(time.Millisecond), func(time.Time) (scope.Result[string], error) {
		return scope.Result[string]{}, errors.New("took too long")
	})
	_, err := op.PerformRaw(op.Choice(task, timeout))
	fmt.Println(err)
	_, _ = host.Join(context.Background())
	// Output:
	// told: scope task cancelled: aborted
	// took too long
}

// Shutting down in steps: no new work, then time to finish, then cancellation.
func ExampleScope_Join() {
	host := scope.New(context.Background(), "host")
	_ = host.Go("stubborn", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})

	grace, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := host.Join(grace)
	fmt.Println(err)
	host.Cancel(errors.New("shutdown"))
	r, err := host.Join(context.Background())
	fmt.Println(r.Err(), err)
	// Output:
	// context deadline exceeded
	// scope host cancelled: shutdown <nil>
}
