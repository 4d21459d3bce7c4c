package op_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/jobhost/jobhost/host/op"
)

// Permits is a primitive written with [op.New]: a counting semaphore whose
// acquiring is an op.
type Permits struct {
	mu      sync.Mutex // protects the fields below
	free    int
	waiters op.WaitList[struct{}]
}

// Acquire returns an op that takes a permit, first come, first served.
func (p *Permits) Acquire() op.Op[struct{}] {
	return op.New(p.try, p.block)
}

func (p *Permits) try() (v struct{}, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return v, false, nil
	}
	p.free--
	return v, true, nil
}

func (p *Permits) block(w *op.Waiter[struct{}]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 { // released since try
		if w.Complete(struct{}{}, nil) {
			p.free--
		}
		return
	}
	p.waiters.Push(w)
	w.OnAbort(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiters.Remove(w)
	})
}

// Release gives a permit to who waits longest, or back.
func (p *Permits) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waiters.Complete(struct{}{}, nil) {
		p.free++
	}
}

func ExampleNew() {
	permits := &Permits{free: 1}
	patient := op.BooleanChoice(
		permits.Acquire(),
		op.Wrap(op.After(time.Millisecond), func(time.Time) (struct{}, error) { return struct{}{}, nil }),
	)
	for range 2 {
		got, _ := op.PerformRaw(patient)
		fmt.Println("permit:", got.Tag)
	}
	permits.Release()
	got, _ := op.PerformRaw(patient)
	fmt.Println("permit:", got.Tag)
	// Output:
	// permit: true
	// permit: false
	// permit: true
}
