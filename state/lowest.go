package state

import (
	"cmp"
	"container/heap"
	"strings"
)

// entry is a state on a board.
type entry struct {
	state *State        // replaced when it changes, never changed
	seq   uint64        // of the change that brought it
	at    [numViews]int // where it stands in the heap of each view
	size  int           // of its texts, in bytes
}

// view is a way to look at states: those of a tag, of a task, or all.
type view int

const (
	ofTag view = iota
	ofTask
	ofAll
	numViews
)

// lowest is a heap of entries whose first prevails over the others.
type lowest struct {
	view    view
	entries []*entry
}

// before is the order in which states prevail: lowest status, task, tag.
func before(a, b *State) bool {
	return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.TaskID, b.TaskID), strings.Compare(a.Tag, b.Tag)) < 0
}

// Len implements [heap.Interface].
func (l *lowest) Len() int { return len(l.entries) }

// Less implements [heap.Interface].
func (l *lowest) Less(i, j int) bool { return before(l.entries[i].state, l.entries[j].state) }

// Swap implements [heap.Interface].
func (l *lowest) Swap(i, j int) {
	l.entries[i], l.entries[j] = l.entries[j], l.entries[i]
	l.entries[i].at[l.view], l.entries[j].at[l.view] = i, j
}

// Push implements [heap.Interface].
func (l *lowest) Push(x any) {
	e := x.(*entry)
	e.at[l.view] = len(l.entries)
	l.entries = append(l.entries, e)
}

// Pop implements [heap.Interface]; states never go one by one.
func (l *lowest) Pop() any { return nil }

// add adds an entry, or puts one in its place that has changed.
func (l *lowest) add(e *entry, isNew bool) {
	if isNew {
		heap.Push(l, e)
	} else {
		heap.Fix(l, e.at[l.view])
	}
}

// first returns the state that prevails; nil = there is none.
func (l *lowest) first() *State {
	if l == nil || len(l.entries) == 0 {
		return nil
	}
	return l.entries[0].state
}

// stream is a tag of a job: the states that there are under it, and which tasks
// have none yet.
type stream struct {
	lowest
	missing int // the first task that has reported nothing; all before have
	waiting []*barrier
}
