package outside_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

var errLate = errors.New("took too long")

// within is o with a limit of time.
func within[T any](o op.Op[T], d time.Duration) op.Op[T] {
	late := op.Wrap(op.After(d), func(time.Time) (v T, err error) { return v, errLate })
	return op.Choice(o, late)
}

func Example_timeout() {
	prices := hub.New[int](hub.Options{})
	s := prices.Subscribe(hub.Query{Key: "tea"})
	defer s.Close()

	next := within(s.NextOp(), time.Millisecond)
	_, err := op.PerformRaw(next)
	fmt.Println(err)
	prices.Publish("tea", 7)
	item, err := op.PerformRaw(next)
	fmt.Println(item.Value, err)
	// Output:
	// took too long
	// 7 <nil>
}

func Example_boundary() {
	root := scope.New(context.Background(), "program")
	search := func(mirror string, took time.Duration) op.Op[string] {
		body := func(ctx context.Context, _ *scope.Scope) (string, error) {
			_, err := op.Perform(ctx, op.After(took)) // work that obeys ctx
			return mirror, err
		}
		return op.Wrap(scope.RunOp(root, mirror, body), func(r scope.Result[string]) (string, error) {
			return r.Value, r.Err()
		})
	}
	// The first answer counts. When Perform returns, the other search has ended.
	fmt.Println(op.PerformRaw(op.Choice(search("slow", time.Hour), search("fast", time.Millisecond))))
	_, _ = root.Join(context.Background())
	// Output: fast <nil>
}

// Kitchen cooks what is ordered, and throws away what its guest doesn't wait for.
type Kitchen struct {
	orders *op.Chan[order]
	wasted int
}

type order struct {
	dish  string
	plate *op.Chan[string]
	nack  op.Op[struct{}]
}

// Order returns an op that orders when it is performed, and results in the dish.
func (k *Kitchen) Order(dish string) op.Op[string] {
	return op.WithNack(func(nack op.Op[struct{}]) op.Op[string] {
		plate := op.NewChan[string](0)
		_, _ = op.PerformRaw(k.orders.Send(order{dish, plate, nack})) // there is room
		return plate.Recv()
	})
}

// Serve is the server: it serves each order, or learns that the guest has chosen something else.
func (k *Kitchen) Serve(ctx context.Context) error {
	for {
		o, err := op.Perform(ctx, k.orders.Recv())
		if err != nil {
			return nil
		}
		served, _ := op.PerformRaw(op.BooleanChoice(o.plate.Send("hot "+o.dish), o.nack))
		if !served.Tag {
			k.wasted++
		}
	}
}

func Example_nack() {
	root := scope.New(context.Background(), "restaurant")
	kitchen := &Kitchen{orders: op.NewChan[order](8)}
	_ = root.Go("kitchen", kitchen.Serve)

	fmt.Println(op.PerformRaw(kitchen.Order("soup")))
	fmt.Println(op.PerformRaw(op.Choice(kitchen.Order("roast"), op.Always("bread"))))
	kitchen.orders.Close()
	_, _ = root.Join(context.Background())
	fmt.Println("wasted:", kitchen.wasted)
	// Output:
	// hot soup <nil>
	// bread <nil>
	// wasted: 1
}

// Level is a number that can be waited for.
type Level struct {
	mu      sync.Mutex // protects the fields below
	n       int
	waiters op.WaitList[int] // for any change
}

// Set sets the level and wakes all who wait for a change.
func (l *Level) Set(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = n
	l.waiters.CompleteAll(n, nil)
}

// Other returns an op that is ready when the level isn't n.
func (l *Level) Other(n int) op.Op[int] {
	return op.New(
		func() (int, bool, error) { // now?
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.n, l.n != n, nil
		},
		func(w *op.Waiter[int]) { // then later
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.n != n { // it changed in between
				w.Complete(l.n, nil)
				return
			}
			l.waiters.Wait(w, &l.mu)
		},
	)
}

func Example_primitive() {
	var level Level
	_, err := op.PerformRaw(within(level.Other(0), time.Millisecond))
	fmt.Println(err)
	level.Set(3)
	fmt.Println(op.PerformRaw(within(level.Other(0), time.Minute)))
	// Output:
	// took too long
	// 3 <nil>
}
