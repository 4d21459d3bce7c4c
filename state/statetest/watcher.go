package statetest

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/state"
)

// Watcher is a feed that checks that what it gets makes sense.
type Watcher struct {
	mu     sync.Mutex // protects the fields below
	states map[string]state.State
	ended  error
	faults []string
}

// Watch returns a feed that was told nothing yet.
func Watch() *Watcher { return &Watcher{states: map[string]state.State{}} }

func keyOf(s state.State) string { return fmt.Sprint(s.TaskID, "/", s.Tag) }

// Put implements [state.Feed].
func (w *Watcher) Put(states ...state.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil && len(states) > 0 {
		w.faults = append(w.faults, "told of states after the end")
	}
	for _, s := range states {
		last := w.states[keyOf(s)]
		if s.Version > last.Version {
			w.states[keyOf(s)] = s
		}
		if s.Version == last.Version && (s.EventID != last.EventID || s.Status != last.Status) {
			w.faults = append(w.faults, fmt.Sprintf("%+v and %+v have one version", s, last))
		}
	}
}

// End implements [state.Feed].
func (w *Watcher) End(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		w.faults = append(w.faults, "ended twice")
	}
	w.ended = reason
}

// Get returns a state that the feed was told; the zero value = there is none.
func (w *Watcher) Get(task int, tag string) state.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[keyOf(state.State{TaskID: task, Tag: tag})]
}

// Ended returns why the feed gets nothing any more; nil = it does.
func (w *Watcher) Ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// Check reports what made no sense.
func (w *Watcher) Check(tb testing.TB) {
	tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		tb.Error(fault)
	}
}

// States returns all states that the feed was told, by task and tag.
func (w *Watcher) States() map[string]state.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.states)
}
