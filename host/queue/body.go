package queue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// bodyCache keeps the bodies of tasks that will run soon, within a budget that
// all lanes share: those of jobs that were just submitted, and those that were
// read ahead. A task without a body here is read when it runs.
// The lane's lock protects it.
type bodyCache struct {
	q     *Queue
	held  map[record.Key]*record.Body
	loads map[record.Key]*load
	mean  int64 // cost of a body in the last read, from which follows how far to read ahead
}

// load is a read of several bodies that is under way.
type load struct {
	done   chan struct{} // closed when bodies and err are set
	bodies map[record.Key]*record.Body
	err    error
}

const (
	// readAhead is how many bodies one read brings at most: enough that its
	// cost is spread thin. Large ones are fewer, about readAheadBytes together.
	readAhead      = 64
	readAheadBytes = 1 << 20
)

func newBodyCache(q *Queue) bodyCache {
	return bodyCache{q: q, held: map[record.Key]*record.Body{}, loads: map[record.Key]*load{}, mean: readAheadBytes / 8}
}

// ahead is how many bodies the next read should bring: as many as are likely
// to find room, and the one that is wanted.
func (c *bodyCache) ahead() int {
	room := min(c.q.cfg.ResidentBytes-c.q.resident.Load(), readAheadBytes)
	return int(min(max(room/c.mean, 1), readAhead))
}

// bodyCost is about what a body takes in memory.
func bodyCost(b *record.Body) int64 { return int64(len(b.Job.Payload)+len(b.Payload)) + 512 }

// keep holds the body if the budget allows, and reports whether it did.
func (c *bodyCache) keep(b *record.Body) bool {
	if c.q.resident.Add(bodyCost(b)) > c.q.cfg.ResidentBytes {
		c.q.resident.Add(-bodyCost(b))
		return false
	}
	c.drop(b.Key)
	c.held[b.Key] = b
	return true
}

// keepsNew reports whether bodies that were just submitted are kept. They take three quarters of the budget at most: the rest is for
// those that run sooner.
func (c *bodyCache) keepsNew() bool { return c.q.resident.Load() < c.q.cfg.ResidentBytes/4*3 }

// take removes the body that belongs to the entry; nil if it is not held.
func (c *bodyCache) take(e order.Entry) *record.Body {
	b := c.held[e.Key]
	c.drop(e.Key)
	if b != nil && b.Token != int64(e.Token) {
		return nil // of an earlier lease
	}
	return b
}

// forget drops what is held of a task, or is being read of it.
func (c *bodyCache) forget(key record.Key) {
	c.drop(key)
	delete(c.loads, key)
}

// clear drops what is held, so that others have the room.
func (c *bodyCache) clear() {
	for key := range c.held {
		c.drop(key)
	}
}

func (c *bodyCache) drop(key record.Key) {
	if b, ok := c.held[key]; ok {
		c.q.resident.Add(-bodyCost(b))
		delete(c.held, key)
	}
}

// body finds what is needed to run the entry. It returns nil when the task is
// no longer open under the entry's token.
func (l *lane) body(ctx context.Context, e order.Entry) (*record.Body, error) {
	for {
		b, ld, keys := l.findBody(e)
		if b != nil {
			return b, nil
		}
		if keys != nil {
			l.load(ctx, ld, keys)
		}
		<-ld.done // ends with the store's read
		if ld.err != nil {
			return nil, ld.err
		}
		if b := ld.bodies[e.Key]; b != nil && b.Token == int64(e.Token) {
			return b, nil
		}
		if keys != nil {
			return nil, nil
		}
		// Another goroutine's read may have begun before the task was opened again.
	}
}

// findBody returns the entry's body if it is held, or the read to wait for;
// with keys, which are what it shall read, it is for the caller to do.
func (l *lane) findBody(e order.Entry) (b *record.Body, ld *load, keys []record.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.bodies.take(e); b != nil {
		return b, nil, nil
	}
	if ld := l.bodies.loads[e.Key]; ld != nil {
		return nil, ld, nil
	}
	ld = &load{done: make(chan struct{})}
	keys = l.nextKeysLocked(e)
	for _, key := range keys {
		l.bodies.loads[key] = ld
	}
	return nil, ld, keys
}

// nextKeysLocked returns the entry's key and those that follow in its level
// and have no body yet.
func (l *lane) nextKeysLocked(e order.Entry) []record.Key {
	most := l.bodies.ahead()
	keys := make([]record.Key, 1, most)
	keys[0] = e.Key
	looked := 0
	for next := range l.order.Near(int(e.Level), 2*readAhead) {
		if looked++; len(keys) == most || looked > 2*readAhead {
			break
		}
		if l.bodies.held[next.Key] == nil && l.bodies.loads[next.Key] == nil {
			keys = append(keys, next.Key)
		}
	}
	return keys
}

// load reads the bodies and keeps those of tasks that do not run yet.
func (l *lane) load(ctx context.Context, ld *load, keys []record.Key) {
	// Others wait for this read, so it must not end with the caller's context.
	bodies, err := l.q.store.Load(context.WithoutCancel(ctx), keys)
	ld.bodies = make(map[record.Key]*record.Body, len(bodies))
	cost := int64(0)
	for i := range bodies {
		ld.bodies[bodies[i].Key] = &bodies[i]
		cost += bodyCost(&bodies[i])
	}
	if err != nil {
		ld.err = fmt.Errorf("load tasks: %w", err)
	}
	l.mu.Lock()
	if len(bodies) > 0 {
		l.bodies.mean = cost / int64(len(bodies))
	}
	for _, key := range keys {
		if l.bodies.loads[key] != ld {
			continue // it was cancelled during the read: what was read is of an earlier lease
		}
		delete(l.bodies.loads, key)
		if b := ld.bodies[key]; b != nil && l.running[key] == nil {
			l.bodies.keep(b)
		}
	}
	l.mu.Unlock()
	close(ld.done)
}
