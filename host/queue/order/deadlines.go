package order

import "github.com/jobhost/jobhost/host/queue/record"

// deadlines has the waiting tasks with a deadline, the next one first. A task
// that is taken or cancelled is removed from waits at once; its entry in the
// heap is skipped later.
type deadlines struct {
	next  entryHeap // readyAt is the deadline
	waits map[record.Key]Waiting
}

// add notes a task with a deadline that begins to wait.
func (d *deadlines) add(e Entry, x Traits) {
	if d.waits == nil {
		d.waits = map[record.Key]Waiting{}
	}
	d.waits[e.Key] = Waiting{e, x}
	d.next.push(Entry{Key: e.Key, ReadyAt: x.Deadline, Token: e.Token})
	if d.next.n > 2*len(d.waits)+mostGone {
		d.sweep()
	}
}

// forget takes out a task that doesn't wait any more, and returns its deadline.
func (d *deadlines) forget(key record.Key) record.Millis {
	if len(d.waits) == 0 {
		return 0
	}
	w := d.waits[key]
	delete(d.waits, key)
	return w.Deadline
}

// due takes out a task whose deadline has passed.
func (d *deadlines) due(now record.Millis) (w Waiting, ok bool) {
	for d.next.n > 0 && d.next.peek().ReadyAt <= now {
		e := d.next.pop()
		if w, ok = d.waits[e.Key]; ok && w.Token == e.Token && w.Deadline == e.ReadyAt {
			delete(d.waits, e.Key)
			return w, true
		}
	}
	return Waiting{}, false
}

// sweep rebuilds the heap without the tasks that were forgotten.
func (d *deadlines) sweep() {
	d.next = entryHeap{}
	for key, w := range d.waits {
		d.next.push(Entry{Key: key, ReadyAt: w.Deadline, Token: w.Token})
	}
}
