//go:build !wasip1

package jobhost_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// urls are requests for paths of the site.
func urls(paths ...string) (requests []jobhost.Request) {
	for _, path := range paths {
		requests = append(requests, jobhost.Request{URL: "http://a/" + path})
	}
	return requests
}

func TestFetchAll(t *testing.T) {
	t.Parallel()
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprint(200 + i)
	}
	for _, tt := range []struct {
		name   string
		paths  []string
		atOnce int
		leave  int // after so many
		left   time.Duration
		sent   int
		drops  int
		errs   error
	}{
		{"nothing", nil, 0, -1, 0, 0, 0, nil},
		{"one after the other", []string{"200", "404", "503"}, 1, -1, 0, 3, 0, nil},
		{"all", many, 0, -1, 0, 200, 0, nil},
		{"more at once than may be", many, 100, -1, 0, 200, 0, nil},
		{"left", []string{"201", "202", "203", "204"}, 3, 1, 0, 3, 2, nil},
		{"no answer", []string{"dns", "200"}, 2, -1, 0, 2, 0, jobhost.ReasonDNS},
		{"refused", []string{"full", "200"}, 2, -1, 0, 1, 0, jobhost.ErrLimit},
		{"out of time", []string{"never", "200", "never", "never"}, 2, -1, time.Minute, 3, 2, jobhost.ErrStopped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answered := map[int]int{}
			var errs []error
			got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
				for i, answer := range job.FetchAll(urls(tt.paths...), tt.atOnce) {
					answered[i]++
					errs = append(errs, answer.Err)
					if answer.Err == nil && string(answer.Response.Body) != "GET "+tt.paths[i] {
						t.Errorf("answer %d is %s", i, answer.Response.Body)
					}
					if len(answered) == tt.leave {
						break
					}
				}
				return nil, nil
			}, jobhost.Attempt{HTTP: site, Remaining: tt.left})
			drops := 0
			for _, r := range got.Requests {
				if r.Dropped {
					drops++
				}
			}
			if len(got.Requests) != tt.sent || drops != tt.drops {
				t.Errorf("%d were sent, and %d dropped", len(got.Requests), drops)
			}
			if err := errors.Join(errs...); !errors.Is(err, tt.errs) {
				t.Errorf("%v", err)
			}
			if tt.leave < 0 && (len(answered) != len(tt.paths) || len(errs) != len(tt.paths)) {
				t.Errorf("%d answers for %d of %d requests", len(errs), len(answered), len(tt.paths))
			}
		})
	}
}

func TestRace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		paths  []string
		winner int
		drops  []bool
		err    string
	}{
		{"the first", []string{"200", "201"}, 0, []bool{false, true}, ""},
		{"the first good one", []string{"never", "dns", "503", "200", "201"}, 3, []bool{true, false, false, false, true}, ""},
		{"none", []string{"dns", "503"}, -1, []bool{false, false}, "GET http://a/dns: no dns\nthe server answered 503"},
		{"nobody", nil, -1, nil, "race: invalid argument"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := do(t, func(job *jobhost.Job) error {
				winner, r, err := job.Race(urls(tt.paths...)...)
				if winner != tt.winner || (r == nil) != (err != nil) {
					t.Errorf("%d, %+v, %v", winner, r, err)
				}
				return err
			})
			text := ""
			if got.Err != nil {
				text = got.Err.Error()
			}
			var drops []bool
			for _, r := range got.Requests {
				drops = append(drops, r.Dropped)
			}
			if diff := cmp.Diff(tt.drops, drops); diff != "" || text != tt.err {
				t.Errorf("%q: %s", text, diff)
			}
		})
	}
}
