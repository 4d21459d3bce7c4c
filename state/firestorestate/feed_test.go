package firestorestate_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
)

var job = state.Job{ID: "job-1"}

// feed remembers all that it gets.
type feed struct {
	mu      sync.Mutex // protects the fields below
	puts    []state.State
	latest  map[string]int64 // version by tag
	end     error
	changed chan struct{} // closed at the next call
}

func newFeed() *feed { return &feed{latest: map[string]int64{}, changed: make(chan struct{})} }

// Put implements [state.Feed].
func (f *feed) Put(states ...state.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range states {
		f.puts = append(f.puts, s)
		f.latest[s.Tag] = max(f.latest[s.Tag], s.Version)
	}
	f.tellLocked()
}

// End implements [state.Feed].
func (f *feed) End(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = reason
	f.tellLocked()
}

func (f *feed) tellLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

func (f *feed) version(tag string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest[tag]
}

// until waits for something that the feed gets.
func (f *feed) until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if reached() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain; end: %v", what, f.reason())
		}
	}
}

// wantRising fails the test if something was told twice, or late.
func (f *feed) wantRising(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	last := map[string]int64{}
	for _, s := range f.puts {
		if s.Version <= last[s.Tag] {
			t.Errorf("version %d of %s was told after %d", s.Version, s.Tag, last[s.Tag])
		}
		last[s.Tag] = s.Version
	}
}

// follow opens the job with a feed.
func follow(t testing.TB, s *firestorestate.Store, tasks int) (state.Source, *feed) {
	t.Helper()
	f := newFeed()
	src, err := s.Open(t.Context(), job, tasks, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src, f
}

// of makes a state of task 0 to write.
func of(tag string, status int32) state.State {
	return state.State{JobID: job.ID, Tag: tag, Status: status, SchemaVersion: 1}
}

func set(t testing.TB, src state.Source, s state.State) state.State {
	t.Helper()
	got, err := src.Set(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// lines is a log that can be waited for.
type lines struct {
	mu      sync.Mutex // protects the fields below
	text    strings.Builder
	changed chan struct{} // closed by the next line
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.changed)
	l.changed = make(chan struct{})
	return len(p), nil
}

// count returns how often the log has a text.
func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// until waits until the log has a text so often.
func (l *lines) until(t testing.TB, text string, times int) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if l.count(text) >= times {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited in vain for %d times %q in the log", times, text)
		}
	}
}
