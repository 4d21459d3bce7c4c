package pgqueue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestRowsOfEveryCommit: commits take turns to change the rows of a count, and hardly ever change the next key; so none of
// these rows has a version for each commit. The counts and keys are right all the same, also in the next term.
func TestRowsOfEveryCommit(t *testing.T) {
	t.Parallel()
	const commits = 130
	schema := postgres.Shared(t).Schema(t)
	s := open(t, schema)
	last := submit(t, s, newSpec("first", "w"))
	const version = "SELECT xmin::text FROM jobhost.sequence"
	before := rows(t, s, version)
	for i := range commits {
		key := submit(t, s, newSpec(fmt.Sprint("job-", i), "w"))
		if key <= last {
			t.Fatalf("the key %d came after %d", key, last)
		}
		last = key
	}
	if after := rows(t, s, version); !slices.Equal(after, before) {
		t.Errorf("the next key was written by %v and %v", before, after)
	}
	if got := rows(t, s, "SELECT count(*), max(n) FROM jobhost.counter WHERE status=0"); !slices.Equal(got, []string{"64 3"}) {
		t.Errorf("rows of a count, and the most of one: %v", got)
	}
	for range 2 {
		counts, err := s.Counts(t.Context())
		if err != nil || counts["w"][record.Open] != commits+1 {
			t.Errorf("%v, %v", counts, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, schema)
	}
	if key := submit(t, s, newSpec("last", "w")); key <= last {
		t.Errorf("the key %d of the next term came after %d", key, last)
	}
}
