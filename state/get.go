package state

import "slices"

// Get returns the state that prevails among those of a query.
func (b *Board) Get(q Query) (State, error) {
	if err := q.check(b.tasks); err != nil {
		return State{}, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.ended != nil {
		return State{}, b.ended
	}
	return b.getLocked(q), nil
}

// getLocked returns the prevailing state, by one of four looks at the board.
func (b *Board) getLocked(q Query) State {
	switch {
	case q.one && q.Tag != "":
		if e := b.states[key{q.task, q.Tag}]; e != nil {
			return *e.state
		}
		return b.notStarted(q.task, q.Tag)
	case q.Tag != "":
		return b.ofTagLocked(q.Tag)
	case q.one:
		if s := b.byTask[q.task].first(); s != nil {
			return *s
		}
		return b.notStarted(q.task, "")
	}
	return b.prevailing(b.all.first(), b.silent, "")
}

func (b *Board) ofTagLocked(tag string) State {
	t := b.tags[tag]
	if t == nil {
		return b.notStarted(0, tag)
	}
	return b.prevailing(t.first(), t.missing, tag)
}

// prevailing returns the lower of a state and that of the first task that has
// reported nothing, if there is such a task.
func (b *Board) prevailing(first *State, missing int, tag string) State {
	if missing >= b.tasks && first != nil {
		return *first
	}
	if silent := b.notStarted(missing, tag); first == nil || before(&silent, first) {
		return silent
	}
	return *first
}

// notStarted is the state of a task that has reported nothing.
func (b *Board) notStarted(task int, tag string) State {
	return State{JobID: b.job.ID, TaskID: task, Tag: tag, SchemaVersion: 1}
}

// List returns the states that there are, by task and tag.
func (b *Board) List(q Query) ([]State, error) {
	if err := q.check(b.tasks); err != nil {
		return nil, err
	}
	states, err := b.selected(q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(states, inOrder)
	list := make([]State, len(states))
	for i, s := range states {
		list[i] = *s
	}
	return list, nil
}

// selected returns the states of a query. Putting many in order takes long, and is
// for callers to do without the lock: the store waits for it to tell of changes.
func (b *Board) selected(q Query) ([]*State, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.selectLocked(q, 0), b.ended
}

// selectLocked returns the states of a query that have changed after a change, in
// no order.
func (b *Board) selectLocked(q Query, after uint64) []*State {
	among := b.all.entries
	switch t := b.tags[q.Tag]; {
	case q.one && q.Tag != "":
		among = nil
		if e := b.states[key{q.task, q.Tag}]; e != nil {
			among = []*entry{e}
		}
	case q.one:
		among = nil
		if of := b.byTask[q.task]; of != nil {
			among = of.entries
		}
	case q.Tag != "":
		among = nil
		if t != nil {
			among = t.entries
		}
	}
	list := make([]*State, 0, len(among))
	for _, e := range among {
		if e.seq > after {
			list = append(list, e.state)
		}
	}
	return list
}
