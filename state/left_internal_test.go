package state

import (
	"context"
	"errors"
	"testing"

	"github.com/jobhost/jobhost"
)

// nothing is a store of jobs that is used by one test.
type nothing struct{ Store }

// Open implements [Store].
func (nothing) Open(context.Context, Job, int, Feed) (Source, error) { return nothingSource{}, nil }

type nothingSource struct{ Source }

// Tasks implements [Source].
func (nothingSource) Tasks() int { return 2 }

// Close implements [Source].
func (nothingSource) Close() error { return nil }

// TestNothingIsLeft looks at what a board remembers of those who have waited and
// watched: any number of them may come.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	b, err := NewBoard(t.Context(), nothing{}, Job{ID: "job"}, 2, Observer{})
	if err != nil {
		t.Fatal(err)
	}
	b.Put(State{Tag: "known", Status: 1, Version: 1})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tag := range []string{"known", "unknown"} {
		if _, err := b.Synchronize(ended, tag, 5); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := b.Synchronize(t.Context(), tag, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Synchronize(t.Context(), tag, jobhost.StatusError); err != nil {
			t.Fatal(err)
		}
		sub, err := b.Subscribe(t.Context(), NewQuery(WithTag(tag)), nil)
		if err != nil {
			t.Fatal(err)
		}
		sub.Close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tags) != 1 || len(b.tags["known"].waiting) != 0 || len(b.subs) != 0 {
		t.Errorf("%d tags, %d wait, %d watch", len(b.tags), len(b.tags["known"].waiting), len(b.subs))
	}
}
