package order

import (
	"iter"
	"maps"
	"slices"

	"github.com/jobhost/jobhost"
)

// Views returns the tasks in a state as they are now. Others may be among them:
// removed ones (see Gone), and retrying ones among scheduled ones. The views may
// be read without the lock, while the order changes. held = no ready task may run.
func (o *Order) Views(state jobhost.State, held bool) []iter.Seq[Entry] {
	var views []iter.Seq[Entry]
	switch state {
	case jobhost.Ready, jobhost.Held:
		if held == (state == jobhost.Held) {
			for i := range o.levels {
				views = append(views, o.levels[i].views()...)
			}
		}
		if o.groups != nil {
			full := o.groups.allFull()
			views = append(views, o.groups.view(func(r ref) bool { return (held || full[r]) == (state == jobhost.Held) }))
		}
		if state == jobhost.Held && len(o.aside) > 0 {
			views = append(views, o.viewAside())
		}
	case jobhost.Scheduled, jobhost.Retrying:
		views = append(views, o.delayed.view())
	}
	return views
}

func (o *Order) viewAside() iter.Seq[Entry] {
	entries := make([]Entry, 0, len(o.aside))
	for w := range maps.Values(o.aside) {
		entries = append(entries, w.Entry)
	}
	return slices.Values(entries)
}

// Near yields the tasks of a level that are probably next, the oldest first. With groups these are the first ones of each
// group, in the order of the groups' turns, and about as many as most says.
func (o *Order) Near(level, most int) iter.Seq[Entry] {
	if o.groups == nil {
		return o.levels[level].ascend()
	}
	return func(yield func(Entry) bool) {
		ring := &o.groups.rings[level]
		each := max(most/max(ring.n, 1), 1)
		for i := range min(ring.n, most) {
			some := o.groups.ascend(ring.at(i), level)
			if ring.at(i) == 0 {
				some = o.levels[level].ascend()
			}
			n := 0
			for e := range some {
				if n++; n > each {
					break
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}
