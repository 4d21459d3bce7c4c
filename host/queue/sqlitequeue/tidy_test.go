package sqlitequeue_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// finish submits and ends n jobs; every keepth is kept forever, the others
// until their key. 0 = none is kept.
func finish(tb testing.TB, store record.Store, prefix string, n, keep int) {
	tb.Helper()
	now := record.MillisOf(time.Now())
	for done := 0; done < n; done += 500 {
		submits := make([]record.Op, min(500, n-done))
		for i := range submits {
			submits[i] = &record.Submit{Job: newSpec(fmt.Sprintf("%s-%08d", prefix, done+i), "echo", now)}
		}
		res, err := commitAll(store, submits...)
		if err != nil {
			tb.Fatal(err)
		}
		settles := make([]record.Op, len(submits))
		for i := range settles {
			op := &record.Settle{
				Key: res[i].Key, Status: record.Succeeded, Attempt: 1, StartedAt: now, EndedAt: now,
				Result: make([]byte, 40), Log: []byte("a line\n"),
			}
			if keep == 0 || (done+i)%keep != 0 {
				op.ExpiresAt = record.Millis(res[i].Key)
			}
			settles[i] = op
		}
		if _, err := commitAll(store, settles...); err != nil {
			tb.Fatal(err)
		}
	}
}

// tidyAll tidies until nothing is left to do, and returns how many tasks were removed.
func tidyAll(tb testing.TB, store record.Store) (removed int64) {
	tb.Helper()
	op := &record.Tidy{At: 1 << 40, Limit: 200}
	for {
		res, err := commitAll(store, op)
		if err != nil {
			tb.Fatal(err)
		}
		removed += res[0].Removed
		if res[0].Next == 0 || res[0].Next > op.At {
			return removed
		}
	}
}

// After most jobs are gone the files take little more than what is left would
// in a database of its own. Where every second job stays, half of each page is
// free and none can be given back: that is room for later jobs' indexes only.
func TestFilesShrink(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		keep int // every so many
	}{{"nothing is left", 0}, {"one in 20 is left", 20}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const jobs = 3000
			dir, fresh := t.TempDir(), t.TempDir()
			store := open(t, sqlitequeue.Options{Dir: dir, Relaxed: true})
			finish(t, store, "a", jobs, tt.keep)
			full := size(t, dir)
			want := int64(jobs)
			if tt.keep > 0 {
				want -= jobs / int64(tt.keep)
			}
			if n := tidyAll(t, store); n != want {
				t.Errorf("%d tasks were removed, want %d", n, want)
			}
			if err := queuetest.Recount(t.Context(), store); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			left := open(t, sqlitequeue.Options{Dir: fresh, Relaxed: true})
			finish(t, left, "a", jobs-int(want), 1)
			if err := left.Close(); err != nil {
				t.Fatal(err)
			}
			const slack = 5 << 18 // free pages below which nothing is given back, and inner pages
			got, ideal := size(t, dir), size(t, fresh)
			t.Logf("%d KiB full, %d KiB left, %d KiB in a database of its own", full>>10, got>>10, ideal>>10)
			if got > ideal*3/2+slack {
				t.Errorf("%d KiB are left, for what takes %d", got>>10, ideal>>10)
			}
		})
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(dir, sqlitedb.FileName+suffix)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// BenchmarkTidy removes jobs that were just finished, 200 at a time.
func BenchmarkTidy(b *testing.B) {
	const jobs = 20_000
	store := open(b, sqlitequeue.Options{Dir: b.TempDir()})
	var worst time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		finish(b, store, fmt.Sprint(n), jobs, 0)
		b.StartTimer()
		for next := record.Millis(1); next != 0; {
			began := time.Now()
			res, err := commitAll(store, &record.Tidy{At: 1 << 40, Limit: 200})
			if err != nil {
				b.Fatal(err)
			}
			worst, next = max(worst, time.Since(began)), res[0].Next
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/task")
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs/commit")
}
