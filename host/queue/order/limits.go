package order

import "github.com/jobhost/jobhost/host/queue/record"

// LimitPerKey changes how many tasks of each concurrency key may run; 0 = no limit.
func (o *Order) LimitPerKey(limit int) {
	o.perKey = limit
	if o.groups == nil || o.groups.limit == limit {
		return
	}
	o.groups.limit = limit
	o.groups.staleAll()
	for _, r := range o.groups.refs {
		o.enlistAll(r)
	}
}

// Hold keeps the tasks of a group from running until Release, or until the group
// has no tasks.
func (o *Order) Hold(id record.Group) {
	if o.groups == nil {
		return
	}
	if r, there := o.groups.refs[id]; there {
		o.groups.hold(r)
	}
}

// Release ends Hold.
func (o *Order) Release(id record.Group) {
	if o.groups == nil {
		return
	}
	if r, there := o.groups.refs[id]; there {
		delete(o.groups.held, r)
		o.enlistAll(r)
	}
}

// Full reports whether as many tasks of a group run as may, or it is held.
func (o *Order) Full(id record.Group) bool {
	if id == 0 || o.groups == nil {
		return false
	}
	r, there := o.groups.refs[id]
	return there && o.groups.full(r)
}
