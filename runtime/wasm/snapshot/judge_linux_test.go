package snapshot

import "testing"

// TestJudge runs jobs in a model of a memory and counts the drops. A job
// touches pages, and changes all of them but the first few.
func TestJudge(t *testing.T) {
	t.Parallel()
	type job struct{ from, to, same int }
	const jobs = 20_000
	for _, tc := range []struct {
		name     string
		job      func(n int) job
		min, max int // drops
		last     int // most pages that may be private in the end
	}{
		{"always the same pages", func(int) job { return job{0, 40, 0} }, 0, 0, 40},
		{"four are written but don't change", func(int) job { return job{0, 31, 4} }, 1, 12, 31},
		{"nothing is written", func(int) job { return job{} }, 0, 0, 0},
		{"one large job, then small ones", func(n int) job {
			if n == 0 {
				return job{0, 4000, 0}
			}
			return job{0, 3, 0}
		}, 1, 1, 3},
		{"two take turns", func(n int) job { return job{n % 2 * 40, n%2*40 + 40, 0} }, 1, 50, 80},
		{"each a little further", func(n int) job { return job{2 * n, 2*n + 40, 0} }, jobs / 1000, jobs / 20, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := &mapping{patience: 1}
			private, drops := map[int]bool{}, 0
			for n := range jobs {
				j := tc.job(n)
				for p := j.from; p < j.to; p++ {
					private[p] = true
				}
				if m.judge(Stats{Private: len(private), Written: max(0, j.to-j.from-j.same)}) {
					clear(private)
					m.vain = 0
					drops++
				}
			}
			if drops < tc.min || drops > tc.max || len(private) > tc.last {
				t.Errorf("%d drops, %d pages in the end", drops, len(private))
			}
		})
	}
}
