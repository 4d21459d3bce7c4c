package sqlitequeue_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// withItems returns a job with n tasks, each with a payload of its own.
func withItems(id string, n, size int) *record.JobSpec {
	job := newSpec(id, "w", 1)
	job.Payload, job.Tasks, job.Items = nil, n, make([][]byte, n)
	for i := range job.Items {
		job.Items[i] = make([]byte, size)
	}
	return job
}

// countItems returns how many items a database holds.
func countItems(t *testing.T, dir string) (n int64) {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: sqlitequeue.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT count(*) FROM item")
		if s.Step() {
			n = s.ColInt(0)
		}
		return s.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Items are removed with their job, whatever removes it.
func TestItemsGoWithTheirJob(t *testing.T) {
	t.Parallel()
	dead := func(key record.Key, i, most int) *record.Settle {
		return &record.Settle{Key: key + record.Key(i), Status: record.Dead, EndedAt: 1, ExpiresAt: 2, MaxDead: most}
	}
	for _, tt := range []struct {
		name   string
		remove func(key record.Key) []record.Op
	}{
		{"delete", func(record.Key) []record.Op { return []record.Op{&record.Cancel{ID: "a"}, &record.Delete{ID: "a"}} }},
		{"tidy", func(record.Key) []record.Op {
			return []record.Op{&record.Cancel{ID: "a", ExpiresAt: 2}, &record.Tidy{At: 3, Limit: 100}}
		}},
		{"evict", func(key record.Key) []record.Op {
			return []record.Op{dead(key, 0, 100), dead(key, 1, 100), dead(key, 2, 100), dead(key, 3, 3)}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store := open(t, sqlitequeue.Options{Dir: dir, Relaxed: true})
			res, err := commitAll(store, &record.Submit{Job: withItems("a", 3, 10)}, &record.Submit{Job: withItems("b", 2, 10)})
			if err != nil {
				t.Fatal(err)
			}
			res, err = commitAll(store, tt.remove(res[0].Key)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range res {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if n := countItems(t, dir); n != 2 {
				t.Errorf("%d items are left, want those of the other job", n)
			}
		})
	}
}

// A database of the version before has no items, and may get some.
func TestDatabaseWithoutItems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := sqlitequeue.Schemas()
	before[0].Steps = before[0].Steps[:8]
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: before})
	if err != nil {
		t.Fatal(err)
	}
	const key = record.Key(7)
	group := fmt.Sprint(int64(record.GroupOf("k")))
	execute(t, db, "INSERT INTO worker(id, name) VALUES(1, 'w')",
		`INSERT INTO job(seq, id, worker, tasks, priority, max_attempts, timeout_ns, created_at, ready_at, digest, options, payload)
			VALUES(7, 'old', 1, 2, 3, 3, 1000000, 1, 1, x'00000000000000000000000000000000', '{"concurrency_key":"k"}', CAST('of the job' AS BLOB))`,
		`INSERT INTO task(seq, job, idx, tasks, worker, level, status, attempt, token, ready_at, started_at, ended_at, result_size, lane_group)
			VALUES(7, 7, 0, 2, 1, 2, 0, 0, 0, 1, 0, 0, 0, `+group+"), (8, 7, 1, 2, 1, 2, 0, 0, 0, 1, 0, 0, 0, "+group+")",
		"INSERT INTO part(job, open, succeeded, dead, cancelled) VALUES(7, 2, 0, 0, 0)",
		"INSERT INTO counter(worker, status, n) VALUES(1, 0, 2)",
		"INSERT INTO span(block, low, high) VALUES(0, 1, 1)",
		"UPDATE sequence SET next=9")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if backups, _ := filepath.Glob(filepath.Join(dir, "*.before-*")); len(backups) != 0 {
		t.Fatalf("backups before the migration: %v", backups)
	}

	store := open(t, sqlitequeue.Options{Dir: dir})
	bodies, err := store.Load(t.Context(), []record.Key{key, key + 1})
	if err != nil || len(bodies) != 2 || bodies[1].Payload != nil || string(bodies[1].Input()) != "of the job" {
		t.Fatalf("got %+v, %v", bodies, err)
	}
	claimed, err := store.Claim(t.Context(), "w", record.Place{}, 9)
	if err != nil || len(claimed) != 2 || claimed[0].Group != record.GroupOf("k") {
		t.Fatalf("got %+v, %v", claimed, err)
	}
	res, err := commitAll(store, &record.Cancel{ID: "old"}, &record.Delete{ID: "old"}, &record.Submit{Job: withItems("new", 2, 7)})
	if err != nil || res[1].Err != nil || res[2].Err != nil {
		t.Fatal(err, res)
	}
	bodies, err = store.Load(t.Context(), []record.Key{res[2].Key + 1})
	if err != nil || len(bodies) != 1 || len(bodies[0].Payload) != 7 {
		t.Fatalf("got %+v, %v", bodies, err)
	}
}

// BenchmarkItems submits a job of ten thousand tasks: with one payload for all,
// and with one for each.
func BenchmarkItems(b *testing.B) {
	const tasks = 10_000
	for _, size := range []int{-1, 100, 1000} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			store := open(b, sqlitequeue.Options{Dir: b.TempDir()})
			var worst time.Duration
			for n := 0; b.Loop(); n++ {
				job := withItems(fmt.Sprint(n), tasks, max(size, 0))
				if size < 0 {
					job.Items = nil
				}
				began := time.Now()
				if _, err := commitAll(store, &record.Submit{Job: job}); err != nil {
					b.Fatal(err)
				}
				worst = max(worst, time.Since(began))
			}
			b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
		})
	}
}

// A job that a version before has stored is found by its digest of that time when it is
// submitted again, and other content is a conflict still.
func TestSubmitAgainAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: t.TempDir(), Schemas: sqlitequeue.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlitequeue.New(db)
	if err != nil {
		t.Fatal(err)
	}
	job := newSpec("old", "w", 1)
	job.Digest, job.DigestBefore = [16]byte{1}, [16]byte{2}
	if res, err := commitAll(store, &record.Submit{Job: job}); err != nil || res[0].Err != nil {
		t.Fatal(res, err)
	}
	execute(t, db, "UPDATE job SET digest=x'02000000000000000000000000000000'")
	other := *job
	other.DigestBefore = [16]byte{1}
	if res, err := commitAll(store, &record.Submit{Job: job}); err != nil || !res[0].Existing {
		t.Errorf("the same job: %+v, %v", res, err)
	}
	if _, err := commitAll(store, &record.Submit{Job: &other}); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("another job: %v", err)
	}
	there, err := store.Job(t.Context(), "old")
	if err != nil || !job.Repeats(&there.JobSpec) || other.Repeats(&there.JobSpec) {
		t.Errorf("got %+v, %v", there, err)
	}
}
