package pgqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// searchJobs is how many jobs the search looks through; their keys are so far apart that they take several stretches.
const (
	searchJobs = 3000
	searchGap  = 40
)

// TestSearch looks for jobs with two labels, or with a label and a worker, of which nearly all have only one.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	made := fmt.Sprintf("FROM (SELECT i, i*%d AS seq FROM generate_series(1, %d) i) j", searchGap, searchJobs)
	for _, sql := range []string{
		"INSERT INTO jobhost.worker VALUES (1, 'even'), (2, 'odd')",
		`INSERT INTO jobhost.job SELECT seq, i, 1+i%2, 1, 0, 3, 0, i, i, '', '', '', '', '', '', '' ` + made,
		`INSERT INTO jobhost.task SELECT seq, seq, 0, 1, 1+i%2, 2, 1, 1, 1, i, i, i, 0, 0, 0, 0, 0, 0, false, '' ` + made,
		`INSERT INTO jobhost.label SELECT 'half', CASE WHEN i%2=0 THEN 'even' ELSE 'odd' END, seq ` + made,
		`INSERT INTO jobhost.label SELECT 'other', 'odd', seq ` + made + ` WHERE i%2=1 OR i%700=0`,
		`INSERT INTO jobhost.child SELECT seq, 'parent', 1, 0, 1 ` + made + ` WHERE i%2=1 OR i%900=0`,
		"INSERT INTO jobhost.counter SELECT worker, status, count(*) FROM jobhost.task GROUP BY 1, 2",
		"INSERT INTO jobhost.span SELECT seq>>10, min(created_at), max(created_at), 0 FROM jobhost.job GROUP BY 1",
	} {
		postgres.Shared(t).Exec(t, strings.ReplaceAll(sql, "jobhost.", s.schema+"."))
	}
	succeeded, odd := record.Succeeded, map[string]string{"other": "odd"}
	for _, tt := range []struct {
		name string
		q    record.ListQuery
		want []string
	}{
		{"labels", record.ListQuery{Labels: map[string]string{"half": "even", "other": "odd"}}, []string{"2800", "2100", "1400", "700"}},
		{"label and worker", record.ListQuery{Labels: odd, Worker: "even"}, []string{"2800", "2100", "1400", "700"}},
		{"label, worker and status", record.ListQuery{Labels: odd, Worker: "even", Status: &succeeded}, []string{"2800", "2100", "1400", "700"}},
		{"parent and worker", record.ListQuery{Parent: "parent", Worker: "even"}, []string{"2700", "1800", "900"}},
		{"since", record.ListQuery{Labels: odd, Worker: "even", After: 1400}, []string{"2800", "2100", "1400"}},
		{"before", record.ListQuery{Labels: odd, Worker: "even", Before: 1400}, []string{"700"}},
		{"none", record.ListQuery{Labels: map[string]string{"half": "even", "other": "odd"}, Parent: "parent"}, nil},
	} {
		for _, limit := range []int{1, 2, 100} {
			var got []string
			for q := tt.q; ; {
				q.Limit = limit
				jobs, err := s.Jobs(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for i := range jobs {
					got = append(got, jobs[i].ID)
				}
				if len(jobs) < limit {
					break
				}
				q.Below = jobs[len(jobs)-1].Key
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s, pages of %d: %v, want %v", tt.name, limit, got, tt.want)
			}
		}
	}
}
