package statetest

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state"
)

// patience is how long the suite waits for what must come.
const patience = time.Minute

// feed is a [state.Feed] that remembers what it got.
type feed struct {
	mu      sync.Mutex // protects the fields below
	states  map[memoryKey]state.State
	history []state.State // what was news, in the order in which it came
	calls   int
	ended   []error
	changed chan struct{} // closed at the next call
}

func newFeed() *feed {
	return &feed{states: map[memoryKey]state.State{}, changed: make(chan struct{})}
}

// Put implements [state.Feed].
func (f *feed) Put(states ...state.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, st := range states {
		key := memoryKey{st.TaskID, st.Tag}
		if st.Version > f.states[key].Version {
			f.states[key] = st
			f.history = append(f.history, st)
		}
	}
	f.toldLocked()
}

// End implements [state.Feed].
func (f *feed) End(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, reason)
	f.toldLocked()
}

func (f *feed) toldLocked() {
	f.calls++
	close(f.changed)
	f.changed = make(chan struct{})
}

// version returns the version of a state that the feed knows; 0 = none.
func (f *feed) version(task int, tag string) int64 { return f.get(task, tag).Version }

func (f *feed) get(task int, tag string) state.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[memoryKey{task, tag}]
}

// count returns how many states the feed knows.
func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.states)
}

// told returns how often the feed was told anything.
func (f *feed) told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// news returns what was news, in the order in which it came.
func (f *feed) news() []state.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.history)
}

// all returns what the feed knows.
func (f *feed) all() map[memoryKey]state.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.states)
}

// reason returns why the feed was ended; nil = it wasn't.
func (f *feed) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ended) == 0 {
		return nil
	}
	return f.ended[0]
}

// until waits for what the feed must get.
func (f *feed) until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if reached() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited for %s in vain: the feed knows %d states and its end is %v", what, f.count(), f.reason())
		}
	}
}

// wantVersion fails the test unless the feed gets a version: at once, or when
// the listener of a late store comes to it.
func (src source) wantVersion(task int, tag string, version int64) {
	src.s.t.Helper()
	if src.s.h.Late {
		src.until(src.s.t, tag, func() bool { return src.version(task, tag) >= version })
	}
	if got := src.version(task, tag); got != version {
		src.s.t.Fatalf("the feed has version %d of %d/%s, want %d", got, task, tag, version)
	}
}

// wantEnd fails the test unless the feed is ended for a reason.
func (src source) wantEnd(reason error) {
	src.s.t.Helper()
	if src.s.h.Late {
		src.until(src.s.t, "the end", func() bool { return src.reason() != nil })
	}
	wantErr(src.s.t, "end of the feed", src.reason(), reason)
}
