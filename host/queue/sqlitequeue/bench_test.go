package sqlitequeue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/testing/cputime"
)

// BenchmarkLifecycle submits a job, waits until it is durable, settles it and
// waits again, in as many goroutines as the name says.
func BenchmarkLifecycle(b *testing.B) {
	for _, producers := range []int{1, 16, 256, 2048} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			lifecycle(b, sqlitequeue.Options{Dir: b.TempDir()}, producers)
		})
	}
	b.Run("relaxed/producers=256", func(b *testing.B) {
		lifecycle(b, sqlitequeue.Options{Dir: b.TempDir(), Relaxed: true}, 256)
	})
	b.Run("memory/producers=256", func(b *testing.B) {
		lifecycle(b, sqlitequeue.Options{}, 256)
	})
}

// BenchmarkBatch is what a job costs the writer alone: batches of 250 submits
// and 250 settlements, one after the other.
func BenchmarkBatch(b *testing.B) {
	const size = 250
	store := open(b, sqlitequeue.Options{Dir: b.TempDir(), Relaxed: true})
	now := record.MillisOf(time.Now())
	ids, submits, settles := 0, make([]record.Op, size), make([]record.Op, size)
	cpu := cputime.Used()
	for b.Loop() {
		for i := range submits {
			ids++
			submits[i] = &record.Submit{Job: newSpec(fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", ids), "echo", now)}
		}
		res, err := commitAll(store, submits...)
		if err != nil {
			b.Fatal(err)
		}
		for i := range settles {
			settles[i] = &record.Settle{
				Key: res[i].Key, Status: record.Succeeded, Attempt: 1, StartedAt: now, EndedAt: now, Result: []byte("ok"),
			}
		}
		if _, err := commitAll(store, settles...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cputime.Used()-cpu).Microseconds())/float64(ids), "cpu-µs/job")
}

func lifecycle(b *testing.B, opts sqlitequeue.Options, producers int) {
	var commits, ops atomic.Int64
	opts.Observer.Commit = func(n int, _ time.Duration) { commits.Add(1); ops.Add(int64(n)) }
	store := open(b, opts)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cputime.Used()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			c := newCaller(store)
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				if err := c.lifecycle(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((cputime.Used()-cpu).Microseconds())/float64(b.N), "cpu-µs/job")
	b.ReportMetric(float64(ops.Load())/float64(max(commits.Load(), 1)), "ops/commit")
}

// caller waits for its own commits, without allocating for it.
type caller struct {
	store record.Store
	done  chan error
	res   record.OpResult
	told  func([]record.OpResult, error)
	ops   [1]record.Op
}

func newCaller(store record.Store) *caller {
	c := &caller{store: store, done: make(chan error, 1)}
	c.told = func(res []record.OpResult, err error) {
		if err == nil {
			c.res, err = res[0], res[0].Err
		}
		c.done <- err
	}
	return c
}

func (c *caller) do(op record.Op) error {
	c.ops[0] = op
	c.store.Commit(c.ops[:], c.told)
	return <-c.done
}

func (c *caller) lifecycle(n int64) error {
	now := record.MillisOf(time.Now())
	spec := newSpec(fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", n), "echo", now)
	if err := c.do(&record.Submit{Job: spec}); err != nil {
		return err
	}
	return c.do(&record.Settle{
		Key: c.res.Key, Status: record.Succeeded, Attempt: 1, StartedAt: now, EndedAt: now, Result: []byte("ok"),
	})
}

func newSpec(id, worker string, now record.Millis) *record.JobSpec {
	return &record.JobSpec{
		ID: id, Worker: worker, Payload: make([]byte, 64), Tasks: 1, Priority: 3, MaxAttempts: 3,
		Timeout: 30 * time.Second, CreatedAt: now, ReadyAt: now,
	}
}

func open(tb testing.TB, opts sqlitequeue.Options) *sqlitequeue.Store {
	tb.Helper()
	store, err := sqlitequeue.Open(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// backlog returns a store with so many open jobs: every ten-thousandth of a
// rare worker, and every thousandth dead.
func backlog(b *testing.B, n int) *sqlitequeue.Store {
	b.Helper()
	store := open(b, sqlitequeue.Options{Dir: b.TempDir(), Relaxed: true})
	const size = 1000
	for first := 0; first < n; first += size {
		var ops []record.Op
		for i := first; i < min(first+size, n); i++ {
			spec := newSpec(fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", i), "echo", record.Millis(1_700_000_000_000+i/10))
			if i%10_000 == 0 {
				spec.Worker = "rare"
			}
			ops = append(ops, &record.Submit{Job: spec})
		}
		res, err := commitAll(store, ops...)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := commitAll(store, &record.Settle{Key: res[500].Key, Status: record.Dead}); err != nil {
			b.Fatal(err)
		}
	}
	return store
}

// BenchmarkBacklog asks a store with a million open jobs what is asked of one.
func BenchmarkBacklog(b *testing.B) {
	const million = 1_000_000
	store := backlog(b, million)
	ctx := b.Context()
	var keys []record.Key
	dead, succeeded := record.Dead, record.Succeeded
	b.Run("claim all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			claimed, err := store.Claim(ctx, "echo", record.Place{}, million)
			if err != nil || len(claimed) < million*9/10 {
				b.Fatal(len(claimed), err)
			}
			for _, c := range claimed[len(claimed)/2:][:256] {
				keys = append(keys, c.Key)
			}
		}
	})
	b.Run("claim 256 in the middle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Claim(ctx, "echo", record.Place{ReadyAt: 1_700_000_050_000}, 256); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load 256", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Load(ctx, keys[:256]); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, page := range []struct {
		name string
		q    record.ListQuery
		want int
	}{
		{"all", record.ListQuery{}, 50},
		{"rare worker", record.ListQuery{Worker: "rare"}, 50},
		{"dead", record.ListQuery{Status: &dead}, 50},
		{"succeeded, of which there are none", record.ListQuery{Status: &succeeded}, 0},
		{"dead of rare worker", record.ListQuery{Worker: "rare", Status: &dead}, 0},
		{"old times", record.ListQuery{Before: 1_700_000_001_000}, 50},
		{"a moment long ago", record.ListQuery{After: 1_700_000_001_000, Before: 1_700_000_001_001, Worker: "echo"}, 9},
	} {
		page.q.Limit = 50
		b.Run("page/"+page.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if jobs, err := store.Jobs(ctx, page.q); err != nil || len(jobs) != page.want {
					b.Fatal(len(jobs), err)
				}
			}
		})
	}
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Counts(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}
