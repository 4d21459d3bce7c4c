package order

import "github.com/jobhost/jobhost/host/queue/record"

// mostGone is how many removed entries are kept before the entries are looked through.
const mostGone = 1024

// Remove removes a task that waits, given as the store has it.
func (o *Order) Remove(e Entry, id record.Group) {
	if _, aside := o.aside[e.Key]; aside {
		delete(o.aside, e.Key)
		o.deadlines.forget(e.Key)
		return
	}
	if at, other := o.readyAt[e.Key]; other {
		e.ReadyAt = at
		delete(o.readyAt, e.Key)
	}
	o.gone[entryID{e.Key, e.Token}] = struct{}{}
	o.deadlines.forget(e.Key)
	if o.groups != nil {
		o.groups.stale[e.Level] = true
	}
	o.uncount(e, id, 1)
	if len(o.gone) > mostGone && len(o.gone) > o.Len() {
		o.sweep()
	}
}

// Gone reports whether an entry of a view was removed since.
func (o *Order) Gone(e Entry) bool {
	_, gone := o.gone[entryID{e.Key, e.Token}]
	return gone
}

// dropGone reports whether an entry was removed, and forgets that.
func (o *Order) dropGone(e Entry) bool {
	if len(o.gone) == 0 {
		return false
	}
	entry := entryID{e.Key, e.Token}
	_, gone := o.gone[entry]
	delete(o.gone, entry)
	return gone
}

// uncount subtracts n from the counters that an entry is in.
func (o *Order) uncount(e Entry, id record.Group, n int) {
	switch {
	case e.ReadyAt > o.now:
		*o.later(e) -= n
	case id != 0:
		o.ready[e.Level] -= n
		o.uncountGroup(e, id, n)
	default:
		o.ready[e.Level] -= n
	}
}

// uncountGroup subtracts n from the counters that a ready task of a group is in.
func (o *Order) uncountGroup(e Entry, id record.Group, n int) {
	g := o.groups
	r := g.refs[id]
	g.at(r).live[e.Level] -= uint32(n)
	g.ready[e.Level] -= n
	if n < 0 {
		o.enlist(r, int(e.Level))
	}
}

// sweep rebuilds everything without the removed entries. Otherwise tasks that are
// submitted for next year and cancelled would pile up.
func (o *Order) sweep() {
	for i := range o.levels {
		var kept level
		for e := range o.levels[i].all() {
			if !o.dropGone(e) {
				kept.push(e)
			}
		}
		o.levels[i] = kept
	}
	o.sweepGroups()
	var kept entryHeap
	for e := range o.delayed.all() {
		if !o.dropGone(e) {
			kept.push(e)
		} else {
			o.dropLater(e)
		}
	}
	o.delayed = kept
}

// sweepGroups rebuilds the groups without the removed entries.
func (o *Order) sweepGroups() {
	if o.groups == nil {
		return
	}
	old := o.groups
	o.groups = newGroups(old.limit, old.left)
	for id, r := range old.refs {
		if n := old.at(r).running; n > 0 {
			o.groups.run(o.groups.find(id), n)
		}
	}
	for e, r := range old.all() {
		if !o.dropGone(e) {
			o.groups.push(e, old.at(r).id)
		}
	}
	for id, r := range old.refs {
		if now, there := o.groups.refs[id]; !there {
			old.left(id)
		} else if old.held[r] {
			o.groups.hold(now)
		}
	}
	for level := range o.levels {
		o.enlist(0, level)
	}
	for _, r := range o.groups.refs {
		o.enlistAll(r)
	}
	if len(o.groups.refs) == 0 {
		o.groups = nil
	}
}
