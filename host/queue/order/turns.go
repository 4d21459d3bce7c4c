package order

import "github.com/jobhost/jobhost/host/queue/record"

// pushGroup adds a ready task that has a group.
func (o *Order) pushGroup(e Entry, id record.Group) {
	if o.groups == nil {
		o.groups = newGroups(o.perKey, o.left)
		for level := range o.levels {
			if o.ready[level] > 0 {
				o.enlist(0, level)
			}
		}
	}
	r := o.groups.push(e, id)
	o.ready[e.Level]++
	o.enlist(r, int(e.Level))
}

// gives reports whether a group has a task of a level that may run.
func (o *Order) gives(r ref, level int) bool {
	if r == 0 {
		return o.ready[level] > o.groups.ready[level]
	}
	return o.groups.at(r).live[level] > 0 && !o.groups.full(r)
}

// enlist adds a group to the end of a level's ring, if it has a task that may run
// and is not there.
func (o *Order) enlist(r ref, level int) {
	g := o.groups
	if !o.gives(r, level) {
		return
	}
	g.oldest[level] = min(g.oldest[level], o.groupHead(r, level).ReadyAt)
	if gr := g.at(r); gr.inRing&(1<<level) == 0 {
		gr.inRing |= 1 << level
		g.rings[level].push(r)
	}
}

func (o *Order) enlistAll(r ref) {
	for level := range o.levels {
		o.enlist(r, level)
	}
}

// delist removes the first group from a level's ring.
func (o *Order) delist(level int) {
	r := o.groups.rings[level].pop()
	o.groups.at(r).inRing &^= 1 << level
	o.groups.drop(r)
}

// groupHead returns the oldest task of a group that is not gone; there must be one.
func (o *Order) groupHead(r ref, level int) Entry {
	if r == 0 {
		return o.head(level)
	}
	g := o.groups
	for {
		head := g.node(g.at(r).roots[level]).Entry
		if !o.dropGone(head) {
			return head
		}
		g.pop(r, level)
	}
}

// refresh removes groups from the front of a level's ring that have nothing to
// give, and finds the oldest task again if it was taken. At worst that looks at
// all groups in the ring, about once in a round.
func (o *Order) refresh(level int) {
	g := o.groups
	ring := &g.rings[level]
	for ring.n > 0 && !o.gives(ring.at(0), level) {
		o.delist(level)
	}
	if !g.stale[level] {
		return
	}
	oldest := never
	for i := 0; i < ring.n && oldest > g.oldest[level]; i++ { // none is older than what was the oldest
		if r := ring.at(i); o.gives(r, level) { // others leave when they are the first
			oldest = min(oldest, o.groupHead(r, level).ReadyAt)
		}
	}
	g.stale[level], g.oldest[level] = false, oldest
}
