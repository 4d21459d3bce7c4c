package workertest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, want, got, diff string }{
		{"a line more", "a\n", "a\nb\n", "@@ -1,1 +1,2 @@\n a\n+b\n"},
		{"all of it", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"nothing left", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"no end", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ no newline at the end\n+b\n"},
		{
			"near changes are together", "1\n2\n3\n4\n5\n6\n7\n8\n", "x\n2\n3\n4\n5\n6\n7\ny\n",
			"@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n",
		},
		{
			"far ones are not", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
			"@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := unified(tt.want, tt.got); got != tt.diff {
				t.Errorf("got\n%s\nwant\n%s", got, tt.diff)
			}
		})
	}
}

func TestUnifiedIsBounded(t *testing.T) {
	t.Parallel()
	want, got := strings.Repeat("a\n", 100_000), strings.Repeat("b\n", 100_000)
	if diff := unified(want, got); strings.Count(diff, "\n") > mostDiff+2 || !strings.Contains(diff, "lines of the comparison more") {
		t.Errorf("%d lines", strings.Count(diff, "\n"))
	}
}

// TestEdits: the edits of any two texts lead from one to the other.
func TestEdits(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"})
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(line, 0, 12).Draw(rt, "want")
		got := rapid.SliceOfN(line, 0, 12).Draw(rt, "got")
		var before, after strings.Builder
		common := 0
		for _, e := range compareLines(want, got) {
			if e.kind != '+' {
				before.WriteString(e.line)
			}
			if e.kind != '-' {
				after.WriteString(e.line)
			}
			if e.kind == ' ' {
				common++
			}
		}
		if before.String() != strings.Join(want, "") || after.String() != strings.Join(got, "") {
			rt.Fatalf("the edits lead from %q to %q", before.String(), after.String())
		}
		if most := longestCommon(want, got); common != most {
			rt.Fatalf("%d lines are common, %d could be", common, most)
		}
	})
}

// longestCommon is how many lines two texts have in common, in their order.
func longestCommon(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		corner := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = corner + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			corner = above
		}
	}
	return row[len(b)]
}
