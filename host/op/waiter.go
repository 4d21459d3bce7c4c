package op

import "sync"

// Waiter is a waiting arm of a performing. The block function of a primitive gets
// it and stores it where the condition is made true.
type Waiter[T any] struct {
	s       *session
	arm     int
	value   T
	err     error
	onAbort func()

	list       *WaitList[T] // the list it is in; nil = none
	next, prev *Waiter[T]
}

// Complete ends the wait with this arm as winner and v, err as its result, and
// reports true. It reports false, and does nothing, if another arm has won, the
// context has ended, or Complete was called before: then the caller still owns what
// it wanted to hand over. It never blocks, and may be called by any goroutine, with
// locks held.
func (w *Waiter[T]) Complete(v T, err error) bool {
	if !w.s.commit(w.arm) {
		return false
	}
	w.value, w.err = v, err
	w.s.wakeUp()
	return true
}

// OnAbort sets a function that undoes the registration if this arm doesn't win. It
// is called at most once, in the performing goroutine, and never after Complete
// reported true. OnAbort itself may be called only within block.
func (w *Waiter[T]) OnAbort(undo func()) { w.onAbort = undo }

func (w *Waiter[T]) withdraw() {
	if w.onAbort != nil {
		w.onAbort()
	}
}

// WaitList is a queue of waiters, first come, first served. The zero value is
// empty. It isn't safe for concurrent use: the mutex that protects the condition
// protects its waiters too.
type WaitList[T any] struct {
	head, tail *Waiter[T]
	n          int
}

// Len is the number of waiters. Some of them may be decided already but not removed
// yet.
func (l *WaitList[T]) Len() int { return l.n }

// Push appends w, which must not be in a list.
func (l *WaitList[T]) Push(w *Waiter[T]) {
	w.list, w.prev = l, l.tail
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.n++
}

// Wait appends w, and removes it again if its arm loses. mu protects the list and
// is held by the caller. Like [Waiter.OnAbort], which it calls, it may be called
// only within block.
func (l *WaitList[T]) Wait(w *Waiter[T], mu sync.Locker) {
	l.Push(w)
	w.OnAbort(func() {
		mu.Lock()
		defer mu.Unlock()
		l.Remove(w)
	})
}

// Remove removes w from the list. It does nothing if w isn't in it.
func (l *WaitList[T]) Remove(w *Waiter[T]) {
	if w.list != l {
		return
	}
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.list, w.next, w.prev = nil, nil, nil
	l.n--
}

// Complete completes the first waiter that is still waiting and removes it from the
// list. It reports false if there was none; then v has no new owner.
func (l *WaitList[T]) Complete(v T, err error) bool {
	for w := l.head; w != nil; w = l.head {
		l.Remove(w)
		if w.Complete(v, err) {
			return true
		}
	}
	return false
}

// CompleteAll completes all waiters, empties the list and returns how many were
// still waiting.
func (l *WaitList[T]) CompleteAll(v T, err error) int {
	n := 0
	for l.Complete(v, err) {
		n++
	}
	return n
}
