package jobhost_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// FuzzCheckID compares CheckID with a second implementation, the pattern of the
// specification.
func FuzzCheckID(f *testing.F) {
	for _, id := range []string{
		"a", "A-b_c.9", "", ".", "..", "-a", "a/b", "../x", "a\n", "a\x00", "é", "%2e", "CON", "*", ">", "a b",
		strings.Repeat("a", 128), strings.Repeat("a", 129), "\ud7ff", "a\u202eb",
	} {
		f.Add(id)
	}
	pattern := regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,127}\z`)
	name := regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{0,62}\z`)
	f.Fuzz(func(t *testing.T, id string) {
		for _, tc := range []struct {
			field string
			err   error
			good  bool
		}{
			{"id", jobhost.CheckID(id), pattern.MatchString(id)},
			{"worker", jobhost.CheckWorker(id), name.MatchString(id)},
		} {
			if (tc.err == nil) != tc.good {
				t.Fatalf("%s %q: %v", tc.field, id, tc.err)
			}
			if tc.good {
				continue
			}
			if jobhost.CodeOf(tc.err) != jobhost.CodeInvalid || jobhost.HintOf(tc.err) == "" {
				t.Errorf("%s %q: %v has no code or hint", tc.field, id, tc.err)
			}
			if text := tc.err.Error(); len(text) > 300 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
				t.Errorf("%s %q: the message is long or raw: %q", tc.field, id, text)
			}
		}
	})
}

func TestNewIDsSortByTheirAge(t *testing.T) {
	t.Parallel()
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = jobhost.NewID()
		if err := jobhost.CheckID(ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("ids are not in order, or not different")
	}
}
