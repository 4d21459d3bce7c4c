package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// slowStore is a store whose next read of tasks can be held up or fail.
type slowStore struct {
	*sqlitequeue.Store
	onLoad func() error // called after each read; nil = nothing
	loads  int
}

func (s *slowStore) Load(ctx context.Context, keys []record.Key) ([]record.Body, error) {
	bodies, err := s.Store.Load(ctx, keys)
	s.loads++
	if f := s.onLoad; f != nil {
		s.onLoad = nil
		err = errors.Join(err, f())
	}
	return bodies, err
}

// slowly gives the fixture a queue over a slow store with a cache of some bytes.
func slowly(t *testing.T, resident int64) (*fixture, *slowStore) {
	t.Helper()
	f := setup(t)
	slow := &slowStore{Store: f.store}
	q, err := queue.New(t.Context(), slow, queue.Config{
		Workers:       []queue.Worker{{Name: "w", Capacity: 1000, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
		ResidentBytes: resident,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	f.Queue = q
	return f, slow
}

func TestRevivedTaskIsNotLostBehindAnOldRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, slow := slowly(t, 1)
		id := f.submit(jobhost.Spec{})
		reading, goOn := make(chan struct{}), make(chan struct{})
		slow.onLoad = func() error {
			close(reading)
			<-goOn
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, second := f.Slot("w"), f.Slot("w")
		go func() { _, _ = first.Take(ctx) }()
		<-reading
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		taken := make(chan *queue.Lease, 1)
		go func() {
			lease, _ := second.Take(ctx)
			taken <- lease
		}()
		synctest.Wait()
		close(goOn)
		if lease := <-taken; lease == nil || lease.Job.ID != id {
			t.Fatal("the revived task was not handed out")
		}
	})
}

func TestCancelOfATaskThatWasPutBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, slow := slowly(t, 1)
		id := f.submit(jobhost.Spec{})
		slow.onLoad = func() error { return errors.New("disk trouble") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		slot := f.Slot("w")
		if _, err := slot.Take(ctx); err == nil {
			t.Fatal("a task was taken that can't be read")
		}
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if n := counts(f); n.Total() != 0 {
			t.Fatalf("%d tasks are counted after the cancel", n.Total())
		}
		next := f.submit(jobhost.Spec{})
		if lease := f.take(slot); lease.Job.ID != next {
			t.Fatalf("took %s", lease.Job.ID)
		}
	})
}

func TestTaskThatCannotBeReadRunsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, slow := slowly(t, 1)
		id := f.submit(jobhost.Spec{})
		slow.onLoad = func() error { return errors.New("disk trouble") }
		if lease := f.take(f.Slot("w")); lease.Job.ID != id || lease.Number() != 1 {
			t.Fatalf("took %s at attempt %d", lease.Job.ID, lease.Number())
		}
	})
}

// What is cancelled while it is read must not stay in memory.
func TestCancelledReadsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, slow := slowly(t, 1<<20)
		f.submit(jobhost.Spec{ID: "first"})
		f.submit(jobhost.Spec{ID: "second"})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, slow = slowlyAgain(t, slow)
		reading, goOn := make(chan struct{}), make(chan struct{})
		slow.onLoad = func() error {
			close(reading)
			<-goOn
			return nil
		}
		taken := make(chan struct{})
		go func() {
			_, _ = f.Slot("w").Take(t.Context())
			close(taken)
		}()
		<-reading
		if _, err := f.Cancel(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		<-taken
		synctest.Wait()
		if n := f.Resident(); n != 0 {
			t.Fatalf("%d bytes are held, but nothing waits", n)
		}
	})
}

func slowlyAgain(t *testing.T, slow *slowStore) (*fixture, *slowStore) {
	t.Helper()
	f := reopen(t, slow.Store)
	q, err := queue.New(t.Context(), slow, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 1000, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	f.Queue = q
	return f, slow
}

// Tasks for a distant time don't take the memory that those need which run now.
func TestScheduledBodiesAreNotKept(t *testing.T) {
	t.Parallel()
	f, slow := slowly(t, 1<<20)
	for range 64 {
		f.submit(jobhost.Spec{Delay: 1000 * time.Hour, Payload: make([]byte, 16<<10)})
	}
	if n := f.Resident(); n != 0 {
		t.Fatalf("%d bytes are held for tasks that are due in 1000 hours", n)
	}
	for range 200 {
		f.submit(jobhost.Spec{})
	}
	slot := f.Slot("w")
	for range 200 {
		f.take(slot)
	}
	if slow.loads > 10 {
		t.Fatalf("%d reads for 200 tasks", slow.loads)
	}
}

func TestListOfAStateBeforeATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "old"})
		time.Sleep(time.Second)
		cut := time.Now()
		time.Sleep(time.Second)
		for range 10 {
			f.submit(jobhost.Spec{})
		}
		page, err := f.Jobs(t.Context(), jobhost.Filter{State: jobhost.Ready, Before: cut, Limit: 1})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != "old" {
			t.Fatalf("page %+v, %v", page, err)
		}
	})
}

func TestOtherContentIsAConflict(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submit(jobhost.Spec{ID: "x", Labels: map[string]string{"a": "b"}})
	// A payload that spells the label as it is hashed.
	payload := []byte("\x01\x00\x00\x00\x00\x00\x00\x00a\x01\x00\x00\x00\x00\x00\x00\x00b")
	_, err := f.Submit(t.Context(), jobhost.Spec{ID: "x", Worker: "w", Payload: payload})
	wantCode(t, err, jobhost.CodeConflict)
}

func TestLogKeepsTheNumberOfItsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		slot := f.Slot("w")
		snoozed := jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: time.Second}
		f.Settle(f.take(slot), queue.Report{Outcome: snoozed, Log: []byte("INFO hello\n")})
		f.settle(f.take(slot), failed(false))
		logs, err := f.Logs(t.Context(), id)
		if err != nil || len(logs) != 1 || logs[0].Attempt != 1 {
			t.Fatalf("logs %+v, %v", logs, err)
		}
	})
}

func TestOldestReadyIsNotACancelledOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		time.Sleep(time.Minute)
		f.submit(jobhost.Spec{})
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if oldest := f.Stats("w").OldestReady; oldest != 0 {
			t.Fatalf("the oldest task waits for %v", oldest)
		}
	})
}

// Submitting for next year and cancelling, again and again, leaves nothing.
func TestCancelledEntriesDoNotPileUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 7 {
		specs := make([]jobhost.Spec, 200)
		for i := range specs {
			specs[i] = jobhost.Spec{Worker: "w", Delay: 1000 * time.Hour}
		}
		answers, err := f.SubmitBatch(t.Context(), specs)
		if err != nil {
			t.Fatal(err)
		}
		var cancels errgroup.Group // together: the store makes them in one transaction
		for _, a := range answers {
			cancels.Go(func() error {
				_, err := f.Cancel(t.Context(), a.Receipt.ID)
				return err
			})
		}
		if err := cancels.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Entries("w"); n > 1100 {
		t.Fatalf("%d entries are held for tasks that were all cancelled", n)
	}
}
