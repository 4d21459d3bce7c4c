package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// openQueue returns a queue with the worker given, over a store in memory.
func openQueue(t *testing.T, w queue.Worker) *queue.Queue {
	t.Helper()
	store := queuetest.NewMemory()
	w.Name, w.Capacity, w.Timeout = "w", 1<<20, time.Minute
	if w.Retry == (jobhost.RetryPolicy{}) {
		w.Retry = jobhost.DefaultRetry()
	}
	q, err := queue.New(t.Context(), store, queue.Config{Workers: []queue.Worker{w}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	return q
}

func put(t *testing.T, q *queue.Queue, specs ...jobhost.Spec) {
	t.Helper()
	for _, spec := range specs {
		spec.Worker = "w"
		if _, err := q.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
}

func take(t *testing.T, slot *queue.Slot) *queue.Lease {
	t.Helper()
	lease, err := slot.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// Keys take turns, those without a key as if they had one, and age decides
// within each.
func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	q := openQueue(t, queue.Worker{})
	for _, id := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "-1", "-2", "c1"} {
		key := id[:1]
		if key == "-" {
			key = ""
		}
		put(t, q, jobhost.Spec{ID: "j" + id, ConcurrencyKey: key})
	}
	put(t, q, jobhost.Spec{ID: "ja0", ConcurrencyKey: "a", Priority: jobhost.High})
	slot := q.Slot("w")
	var got []string
	for range 10 {
		lease := take(t, slot)
		got = append(got, lease.Job.ID)
		q.Settle(lease, queue.Report{Outcome: succeeded("")})
	}
	want := []string{"ja0", "ja1", "jb1", "j-1", "jc1", "ja2", "jb2", "j-2", "ja3", "ja4"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Of each key no more run than may; the others say why they wait.
func TestConcurrencyPerKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := openQueue(t, queue.Worker{PerKey: 2})
		for i := range 4 {
			put(t, q, jobhost.Spec{ID: fmt.Sprint("a", i), ConcurrencyKey: "a"}, jobhost.Spec{ID: fmt.Sprint("b", i), ConcurrencyKey: "b"})
		}
		leases := make(chan *queue.Lease, 8)
		for range 6 {
			slot := q.Slot("w")
			go func() {
				for {
					lease, err := slot.Take(context.Background())
					if err != nil {
						return
					}
					leases <- lease
				}
			}()
		}
		synctest.Wait()
		if n := len(leases); n != 4 {
			t.Fatalf("%d tasks run, want 2 of each key", n)
		}
		if n := q.Stats("w").Counts(); n[jobhost.Held] != 4 || n[jobhost.Ready] != 0 {
			t.Errorf("the numbers are %v, want 4 held", n)
		}
		page, err := q.Jobs(t.Context(), jobhost.Filter{State: jobhost.Held})
		if err != nil || len(page.Jobs) != 4 {
			t.Errorf("%d jobs are held (%v), want 4", len(page.Jobs), err)
		}
		why, err := q.Why(t.Context(), "b3")
		if err != nil || why.State != jobhost.Held || why.Code != "concurrency" {
			t.Errorf("got %+v, %v", why, err)
		}
		for range 8 {
			q.Settle(<-leases, queue.Report{Outcome: succeeded("")})
			synctest.Wait()
		}
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("%v tasks are left", n)
		}
	})
}

// A cancelled attempt that goes on counts for its key until it has ended.
func TestCancelledAttemptKeepsItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := openQueue(t, queue.Worker{PerKey: 1})
		put(t, q, jobhost.Spec{ID: "first", ConcurrencyKey: "k"}, jobhost.Spec{ID: "second", ConcurrencyKey: "k"})
		slot := q.Slot("w")
		lease := take(t, slot)
		if _, err := q.Cancel(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		next := make(chan *queue.Lease, 1)
		other := q.Slot("w")
		go func() {
			lease, _ := other.Take(context.Background())
			next <- lease
		}()
		synctest.Wait()
		if len(next) != 0 {
			t.Fatal("another task of the key runs beside the cancelled attempt")
		}
		q.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeCancelled}})
		q.Settle(<-next, queue.Report{Outcome: succeeded("")})
		synctest.Wait()
	})
}

// Tasks begin at the rate and not before, after a burst; the time they wait for
// is told.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := openQueue(t, queue.Worker{Rate: jobhost.Rate{Count: 10, Per: time.Second}, RateBurst: 3})
		for i := range 8 {
			put(t, q, jobhost.Spec{ID: fmt.Sprint(i)})
		}
		began, slot := time.Now(), q.Slot("w")
		var got []time.Duration
		run := func() {
			lease := take(t, slot)
			got = append(got, time.Since(began))
			q.Settle(lease, queue.Report{Outcome: succeeded("")})
		}
		for range 3 {
			run()
		}
		why, err := q.Why(t.Context(), "5")
		if err != nil || why.State != jobhost.Held || why.Code != "rate_limit" || why.Until == nil || !why.Until.Equal(began.Add(100*time.Millisecond)) {
			t.Errorf("got %+v, %v", why, err)
		}
		for range 3 {
			run()
		}
		time.Sleep(10 * time.Second) // a rest gives a burst, and no more
		for range 2 {
			run()
		}
		var want []time.Duration
		for _, ms := range []int64{0, 0, 0, 100, 200, 300, 10_300, 10_300} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(got, want) {
			t.Errorf("tasks began at %v, want %v", got, want)
		}
	})
}

// A limit that is raised lets go at once, and one that is taken away too.
func TestLimitsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := queue.Worker{Name: "w", Capacity: 100, Timeout: time.Minute, Retry: jobhost.DefaultRetry(), PerKey: 1}
		q := openQueue(t, w)
		for i := range 6 {
			put(t, q, jobhost.Spec{ID: fmt.Sprint(i), ConcurrencyKey: "k"})
		}
		leases := make(chan *queue.Lease, 6)
		for range 6 {
			slot := q.Slot("w")
			go func() {
				if lease, err := slot.Take(context.Background()); err == nil {
					leases <- lease
				}
			}()
		}
		for _, step := range []struct {
			change func(*queue.Worker)
			want   int
		}{
			{func(*queue.Worker) {}, 1},
			{func(w *queue.Worker) { w.PerKey = 3 }, 3},
			{func(w *queue.Worker) { w.PerKey, w.Rate = 0, jobhost.Rate{Count: 1, Per: time.Hour} }, 4},
			{func(w *queue.Worker) { w.Rate = jobhost.Rate{} }, 6},
		} {
			step.change(&w)
			q.Put(w)
			synctest.Wait()
			if len(leases) != step.want {
				t.Fatalf("with %+v %d tasks run, want %d", w, len(leases), step.want)
			}
		}
		for range 6 {
			q.Settle(<-leases, queue.Report{Outcome: succeeded("")})
		}
		synctest.Wait()
	})
}
