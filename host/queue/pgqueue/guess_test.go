package pgqueue_test

import (
	"fmt"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestTakenIDs: submits take ids that the image doesn't know for free. If one isn't, the whole commit is made again,
// and each is answered as if it had been looked up.
func TestTakenIDs(t *testing.T) {
	t.Parallel()
	schema := postgres.Shared(t).Schema(t)
	s := open(t, schema)
	digest := func(b byte) func(*record.JobSpec) {
		return func(job *record.JobSpec) { job.Digest = [16]byte{b} }
	}
	unique := func(job *record.JobSpec) { job.UniqueKey, job.UniqueUntil = "u", 5 }
	plain := submit(t, s, newSpec("plain", "w", digest(1)))
	keyed := submit(t, s, newSpec("keyed", "w", digest(2), unique))
	next := submit(t, s, newSpec("next", "w", func(job *record.JobSpec) { job.CreatedAt, job.UniqueKey = 6, "u" }))
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct=", direct), func(t *testing.T) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, schema) // whose image knows no id
			ops := []record.Op{
				&record.Submit{Job: newSpec(fmt.Sprint("new-", direct), "w")},
				&record.Submit{Job: newSpec("plain", "w", digest(1))},
				&record.Submit{Job: newSpec("plain", "w", digest(9))},
				// The one that had the unique key, and has it no more.
				&record.Submit{Job: newSpec("keyed", "w", digest(2), func(job *record.JobSpec) { job.CreatedAt, job.UniqueKey = 7, "u" })},
			}
			if direct {
				ops = append([]record.Op{&record.Cancel{ID: "none", At: 8}}, ops...)
			}
			res, err := commit(s, ops...)
			if err != nil {
				t.Fatal(err)
			}
			if direct {
				res = res[1:]
			}
			if r := res[0]; r.Err != nil || r.Existing {
				t.Errorf("a new one: %+v", r)
			}
			if r := res[1]; !r.Existing || r.Key != plain {
				t.Errorf("one that is there: %+v, want the key %d", r, plain)
			}
			if r := res[2]; jobhost.CodeOf(r.Err) != jobhost.CodeConflict {
				t.Errorf("another one with its id: %+v", r)
			}
			if r := res[3]; !r.Existing || r.Key != keyed {
				t.Errorf("one that is there, whose unique key is another's: %+v, want the key %d, not %d", r, keyed, next)
			}
			if err := s.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
