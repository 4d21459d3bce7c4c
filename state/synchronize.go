package state

import (
	"context"
	"slices"

	"github.com/jobhost/jobhost"
)

// barrier waits for all tasks to come as far as a status.
type barrier struct {
	target  int32
	reached chan struct{} // closed then, and when the board ends
	states  []State       // of all tasks at that moment, for all who waited; nil when the board ended
}

// Synchronize waits until every task has at least the status target under a tag,
// and returns the states of all tasks at that moment by their index. If ctx ends
// before, they come as far as they are, with its cause; a task that has reported
// nothing is not started. When the board ends there are no states, and the reason.
func (b *Board) Synchronize(ctx context.Context, tag string, target int32) ([]State, error) {
	return b.synchronize(ctx, tag, target, nil)
}

// synchronize is Synchronize for a manager that may be closed before it returns.
func (b *Board) synchronize(ctx context.Context, tag string, target int32, closed <-chan struct{}) ([]State, error) {
	if err := jobhost.CheckTag(tag); err != nil {
		return nil, err
	}
	w, err := b.await(tag, target)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.reached:
	case <-ctx.Done():
	case <-closed:
	}
	b.mu.Lock()
	if w.states != nil {
		b.mu.Unlock() // many may have waited, and all copy
		return slices.Clone(w.states), nil
	}
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	b.leaveLocked(tag, w)
	if ctx.Err() == nil {
		return nil, ErrClosed
	}
	return b.everyLocked(tag), context.Cause(ctx)
}

// await registers a barrier, which may have been reached already.
func (b *Board) await(tag string, target int32) (*barrier, error) {
	w := &barrier{target: target, reached: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	t := b.tags[tag]
	if t == nil {
		t = &stream{lowest: lowest{view: ofTag}}
		b.tags[tag] = t
	}
	t.waiting = append(t.waiting, w)
	b.wakeLocked(tag, t)
	b.forgetLocked(tag, t)
	return w, nil
}

// wakeLocked opens the barriers of a tag that were reached.
func (b *Board) wakeLocked(tag string, t *stream) {
	if len(t.waiting) == 0 {
		return
	}
	low := b.ofTagLocked(tag).Status
	var states []State // once for all, since they may be as many as the tasks
	t.waiting = slices.DeleteFunc(t.waiting, func(w *barrier) bool {
		if low < w.target {
			return false
		}
		if states == nil {
			states = b.everyLocked(tag)
		}
		w.states = states
		close(w.reached)
		return true
	})
}

// everyLocked returns the states of all tasks under a tag.
func (b *Board) everyLocked(tag string) []State {
	all := make([]State, b.tasks)
	for task := range all {
		all[task] = b.getLocked(Query{task: task, one: true, Tag: tag})
	}
	return all
}

// leaveLocked gives a barrier up.
func (b *Board) leaveLocked(tag string, w *barrier) {
	t := b.tags[tag]
	t.waiting = slices.DeleteFunc(t.waiting, func(other *barrier) bool { return other == w })
	b.forgetLocked(tag, t)
}

// forgetLocked forgets a tag that was only waited for.
func (b *Board) forgetLocked(tag string, t *stream) {
	if len(t.waiting) == 0 && t.Len() == 0 {
		delete(b.tags, tag)
	}
}

// release lets all who wait look why.
func (t *stream) release() {
	for _, w := range t.waiting {
		close(w.reached)
	}
	t.waiting = nil
}
