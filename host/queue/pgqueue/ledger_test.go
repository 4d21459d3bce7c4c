package pgqueue_test

import (
	"fmt"
	"testing"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// live submits a job and settles it, in a commit each.
func live(t *testing.T, s *store, id string) record.Key {
	t.Helper()
	key := submit(t, s, newSpec(id, "w"))
	must(t, s, &record.Settle{Key: key, Status: record.Succeeded, EndedAt: 2, Attempt: 1})
	return key
}

// TestNoRowOfAllCommits: nothing has a row that every commit writes. Its versions are kept while anybody looks at an old
// snapshot, and each commit would have to go through all of them.
func TestNoRowOfAllCommits(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	for _, sql := range []string{
		"CREATE TABLE jobhost.written (what text)",
		`CREATE FUNCTION jobhost.note() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN INSERT INTO jobhost.written VALUES (TG_RELNAME || coalesce(to_jsonb(NEW)->>'worker', '') || coalesce(to_jsonb(NEW)->>'status', '') ||
				coalesce('/' || (to_jsonb(NEW)->>'age'), '')); RETURN NEW; END$$`,
		"CREATE TRIGGER noted AFTER UPDATE ON jobhost.counter FOR EACH ROW EXECUTE FUNCTION jobhost.note()",
		"CREATE TRIGGER noted AFTER UPDATE ON jobhost.sequence FOR EACH ROW EXECUTE FUNCTION jobhost.note()",
	} {
		rows(t, s, sql)
	}
	const lives = 400
	for i := range lives {
		live(t, s, fmt.Sprint("job-", i))
	}
	for _, often := range rows(t, s, "SELECT what, count(*) FROM jobhost.written GROUP BY what HAVING count(*)>256") {
		t.Errorf("a row was written often: %s", often)
	}
	if n := rows(t, s, "SELECT count(*)>0 FROM jobhost.written"); n[0] != "true" {
		t.Error("no writes were seen")
	}
}

// TestAges: numbers are right whatever the ages of their rows, within a term and over several, and rows of many ages
// become one.
func TestAges(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	var last record.Key
	for term := range 3 {
		s := open(t, schema)
		s.SetAges(4, 2)
		for i := range 25 {
			key := live(t, s, fmt.Sprintf("job-%d-%d", term, i))
			if key <= last {
				t.Fatalf("key %d was given out after %d", key, last)
			}
			last = key
		}
		// What is refused leaves the numbers as they are.
		if res, err := commit(s, &record.Submit{Job: newSpec(fmt.Sprintf("job-%d-0", term), "w", func(j *record.JobSpec) { j.Digest[0] = 1 })}); err == nil && res[0].Err == nil {
			t.Error("a job was submitted twice")
		}
		submit(t, s, newSpec(fmt.Sprint("open-", term), "w"))
		counts, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := counts["w"]; got[record.Succeeded] != int64(25*(term+1)) || got[record.Open] != int64(term+1) {
			t.Errorf("in term %d the numbers are %v", term, got)
		}
		if n := rows(t, s, "SELECT count(DISTINCT age)<=6 FROM jobhost.counter"); n[0] != "true" {
			t.Errorf("there are rows of %v ages", rows(t, s, "SELECT DISTINCT age FROM jobhost.counter"))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
