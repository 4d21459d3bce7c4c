package flowtest

import (
	"container/heap"
	"time"
)

// event is something that will happen.
type event struct {
	at    time.Time
	order int // among those at the same time
	do    func()
	gone  bool // it was taken back
}

// agenda is a heap of events.
type agenda struct {
	list  []*event
	count int
}

func (a *agenda) Len() int { return len(a.list) }

func (a *agenda) Less(i, j int) bool {
	if !a.list[i].at.Equal(a.list[j].at) {
		return a.list[i].at.Before(a.list[j].at)
	}
	return a.list[i].order < a.list[j].order
}

func (a *agenda) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

// Push implements [heap.Interface].
func (a *agenda) Push(x any) { a.list = append(a.list, x.(*event)) }

// Pop implements [heap.Interface].
func (a *agenda) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}

// at schedules something for a time.
func (k *Kit) at(t time.Time, do func()) *event {
	k.agenda.count++
	e := &event{at: t, order: k.agenda.count, do: do}
	heap.Push(&k.agenda, e)
	return e
}

// soon schedules something for now, after what is already scheduled for now.
func (k *Kit) soon(do func()) { k.at(k.now, do) }

// upcoming returns the next event; nil = none.
func (k *Kit) upcoming() *event {
	for len(k.agenda.list) > 0 {
		if e := k.agenda.list[0]; !e.gone {
			return e
		}
		heap.Pop(&k.agenda)
	}
	return nil
}

// happen performs the next event, unless it is later than until.
func (k *Kit) happen(until time.Time) bool {
	e := k.upcoming()
	if k.failed || e == nil || e.at.After(until) {
		return false
	}
	heap.Pop(&k.agenda)
	if e.at.After(k.now) {
		k.now = e.at
	}
	k.busy = true
	defer func() { k.busy = false }()
	e.do()
	return true
}

// settle performs all events that are due now.
func (k *Kit) settle() {
	for !k.busy && k.happen(k.now) {
	}
}
