package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// countingStore counts reads, and the tasks that they bring.
type countingStore struct {
	record.Store
	reads, tasks int
}

func (s *countingStore) Job(ctx context.Context, id string) (record.JobRecord, error) {
	job, err := s.Store.Job(ctx, id)
	s.reads++
	s.tasks += len(job.Tasks)
	return job, err
}

func (s *countingStore) Result(ctx context.Context, key record.Key) ([]byte, error) {
	s.reads++
	s.tasks++
	return s.Store.Result(ctx, key)
}

func (s *countingStore) Results(ctx context.Context, job record.Key, from, limit, most int) ([]record.ResultRecord, error) {
	list, err := s.Store.Results(ctx, job, from, limit, most)
	s.reads++
	s.tasks += len(list)
	return list, err
}

// The results of a job cost as much for each task of ten thousand as of a hundred.
func TestResultsAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	for _, tasks := range []int{1, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			f := setup(t)
			id := f.submit(jobhost.Spec{Tasks: tasks})
			slot := f.Slot("w")
			for range tasks {
				lease := f.take(slot)
				f.Settle(lease, queue.Report{Outcome: succeeded(fmt.Sprint("result ", lease.Index))})
			}
			synctest.Wait()
			if err := f.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			store := &countingStore{Store: f.store}
			f = reopenAny(t, store)
			n := 0
			for r, err := range f.Results(t.Context(), id, 100) {
				if err != nil || r.Task != n || string(r.Data) != fmt.Sprint("result ", n) {
					t.Fatalf("result %d: %d %q, %v", n, r.Task, r.Data, err)
				}
				n++
			}
			if n != tasks || store.reads > 3+tasks/100 || store.tasks > 2*tasks {
				t.Errorf("%d results of %d took %d reads that brought %d tasks", n, tasks, store.reads, store.tasks)
			}
		})
	}
}

// Who stops reading results stops the reads of the store; an error ends the list.
func TestResultsThatEndEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{Tasks: 2})
		f.settle(f.take(f.Slot("w")), succeeded("a large one"))
		f.settle(f.take(f.Slot("w")), succeeded("small"))
		var got []string
		for r, err := range f.Results(t.Context(), id, 5) {
			got = append(got, fmt.Sprint(r.Task, string(r.Data), err))
		}
		if fmt.Sprint(got) != "[1small<nil>]" {
			t.Errorf("results of up to 5 bytes: %q", got)
		}
		for range f.Results(t.Context(), id, 100) {
			break
		}
		for _, err := range f.Results(t.Context(), "nobody", 100) {
			if jobhost.CodeOf(err) != jobhost.CodeNotFound {
				t.Errorf("results of no job: %v", err)
			}
		}
	})
}
