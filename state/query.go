package state

import (
	"cmp"
	"strings"

	"github.com/jobhost/jobhost"
)

// Query selects states of a job. The zero value selects all.
type Query struct {
	task int
	one  bool // only those of the task
	// Tag selects those of one tag; empty = of all.
	Tag string
	// After is the cursor of the last event that was seen: see [Board.Subscribe].
	After string
}

// Option narrows a [Query] down.
type Option func(*Query)

// WithTaskID selects the states of one task.
func WithTaskID(task int) Option { return func(q *Query) { q.task, q.one = task, true } }

// WithTag selects the states of one tag; empty = of all.
func WithTag(tag string) Option { return func(q *Query) { q.Tag = tag } }

// WithAfter leaves out of a replay what has not changed since a cursor.
func WithAfter(cursor string) Option { return func(q *Query) { q.After = cursor } }

// NewQuery returns the query that options make.
func NewQuery(opts ...Option) Query {
	var q Query
	for _, o := range opts {
		o(&q)
	}
	return q
}

// check reports what is wrong with the query for a job.
func (q *Query) check(tasks int) error {
	if q.one {
		if err := checkTask(q.task, tasks); err != nil {
			return err
		}
	}
	if q.Tag == "" {
		return nil
	}
	return jobhost.CheckTag(q.Tag)
}

// selects reports whether a state is among those of the query.
func (q *Query) selects(s *State) bool {
	return (!q.one || s.TaskID == q.task) && (q.Tag == "" || s.Tag == q.Tag)
}

// inOrder is the order of lists.
func inOrder(a, b *State) int {
	if c := cmp.Compare(a.TaskID, b.TaskID); c != 0 {
		return c
	}
	return strings.Compare(a.Tag, b.Tag)
}

// asReplayed is the order of replays: oldest first.
func asReplayed(a, b *State) int {
	if c := a.Timestamp.Compare(b.Timestamp); c != 0 {
		return c // nearly always
	}
	if c := cmp.Compare(a.Version, b.Version); c != 0 {
		return c
	}
	return inOrder(a, b)
}
