package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// machines is a lane with slots on several machines.
type machines struct {
	*lane
	tasks record.Key
}

func newMachines() *machines {
	q := &Queue{clock: newClock(time.Now), cfg: Config{Aging: time.Minute}, closing: make(chan struct{})}
	m := &machines{lane: newLane(q, "w")}
	m.worker.Store(&Worker{Memory: 10})
	m.parked.Store(false)
	return m
}

// wait lets a slot on a machine wait for a task.
func (m *machines) wait(g *gate) *Slot {
	s := &Slot{lane: m.lane, gate: g, handed: make(chan *Lease, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = append(m.idle, s)
	m.pumpLocked()
	return s
}

// push adds a task.
func (m *machines) push() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks++
	m.order.Push(order.Entry{Key: m.tasks, Level: 2}, order.Traits{})
	m.pumpLocked()
}

// settle ends what a slot has.
func (m *machines) settle(t *testing.T, s *Slot) {
	t.Helper()
	lease := <-s.handed
	if lease.place.gate != s.gate || lease.place.memory != 10 {
		t.Errorf("a slot has the place %+v", lease.place)
	}
	m.finish(lease)
	lease.place.leave()
}

func busy(slots ...*Slot) int {
	n := 0
	for _, s := range slots {
		n += len(s.handed)
	}
	return n
}

// A task goes to a slot whose machine has room, and a slot waits for its own machine.
func TestSlotsOfSeveralMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, here, there := newMachines(), newGate(1, 0), newGate(0, 15)
		a1, a2 := m.wait(here), m.wait(here)
		b1, b2 := m.wait(there), m.wait(there)
		for range 3 {
			m.push()
		}
		if busy(a1, a2) != 1 || busy(b1, b2) != 1 {
			t.Fatalf("%d tasks run here and %d there, want one each", busy(a1, a2), busy(b1, b2))
		}
		on := func(slots ...*Slot) *Slot {
			return slots[slices.IndexFunc(slots, func(s *Slot) bool { return len(s.handed) == 1 })]
		}
		m.settle(t, on(b1, b2))
		if busy(a1, a2) != 1 || busy(b1, b2) != 1 {
			t.Fatalf("%d tasks run here and %d there after one ended", busy(a1, a2), busy(b1, b2))
		}
		m.settle(t, on(a1, a2))
		m.settle(t, on(b1, b2))
		if here.places != 1 || there.memory != 15 || len(here.queue)+len(there.queue) != 0 {
			t.Errorf("places %d, memory %d", here.places, there.memory)
		}
	})
}

// Room on one machine is of no use to a lane whose slots on it are gone: the next lane gets it.
func TestRoomWithoutASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, here, there := newMachines(), newGate(1, 0), newGate(1, 0)
		a, b := m.wait(here), m.wait(there)
		m.push()
		m.push()
		gone := m.wait(here)
		m.wait(there)
		m.push()
		m.mu.Lock()
		m.idle = slices.DeleteFunc(m.idle, func(s *Slot) bool { return s == gone })
		m.mu.Unlock()
		other := newMachines()
		waits := other.wait(here)
		other.push()
		m.settle(t, a)
		if busy(waits) != 1 || busy(gone) != 0 {
			t.Error("the other lane was not let in")
		}
		m.settle(t, b)
		if len(m.idle) != 0 || m.order.AnyReady() {
			t.Error("the last task waits, though there is a slot with room")
		}
	})
}
