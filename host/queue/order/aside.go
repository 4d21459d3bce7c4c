package order

import (
	"slices"

	"github.com/jobhost/jobhost/host/queue/record"
)

// SetAside adds a ready task that must not run until BringBack returns it to the others.
func (o *Order) SetAside(e Entry, x Traits) {
	if x.Deadline != 0 {
		o.deadlines.add(e, x)
	}
	if o.aside == nil {
		o.aside = map[record.Key]Waiting{}
	}
	o.aside[e.Key] = Waiting{e, x}
}

// Aside returns a task that was set aside; false = it was not.
func (o *Order) Aside(key record.Key) (w Waiting, ok bool) {
	w, ok = o.aside[key]
	return w, ok
}

// BringBack puts back the tasks that were set aside and may run now, in the
// order in which they would have run.
func (o *Order) BringBack(may func(record.Key) bool) {
	var back []Waiting
	for key, w := range o.aside {
		if may(key) {
			back = append(back, w)
			delete(o.aside, key)
		}
	}
	slices.SortFunc(back, func(a, b Waiting) int {
		if older(a.Entry, b.Entry) {
			return -1
		}
		return 1
	})
	for _, w := range back {
		o.deadlines.forget(w.Key)
		o.PutBack(w.Entry, w.Traits)
	}
	if len(o.aside) == 0 {
		o.aside = nil // a map never gets smaller
	}
}
