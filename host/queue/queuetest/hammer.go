package queuetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

func testReopen(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("the store leaves nothing behind")
	}
	s := open(t, h)
	a := s.submit(full("a", "w"))
	b := s.submit(spec("b", "x"))
	op := settlement(b, record.Succeeded)
	op.Result, op.Log = []byte("result"), []byte("log\n")
	s.must(op)
	retry := settlement(a, record.Open)
	retry.Failure = &jobhost.Failure{Code: "trap"}
	s.must(retry)
	last := s.submit(spec("c", "w", tasks(3)))
	before := []record.JobRecord{s.job("a"), s.job("b"), s.job("c")}
	claims, counts := s.claim("w", record.Place{}, 10), s.counts()

	s.Store = h.Reopen(t, s.Store)
	wantSame(t, "jobs", []record.JobRecord{s.job("a"), s.job("b"), s.job("c")}, before)
	wantSame(t, "claims", s.claim("w", record.Place{}, 10), claims)
	wantSame(t, "counts", s.counts(), counts)
	if result, err := s.Result(t.Context(), b); err != nil || string(result) != "result" {
		t.Fatalf("result %q, %v", result, err)
	}
	if next := s.submit(spec("d", "new")); next < last+3 {
		t.Fatalf("key %d was given before: the last job has %d", next, last)
	}
	// A lease of the former life still fences.
	wantFenced(t, s.do(settlement(a, record.Succeeded))[0])
	s.checkCounts()
}

// testHammer uses everything from many goroutines; the race detector and the
// counters say whether that is right.
func testHammer(t *testing.T, h Harness) {
	const producers = 8
	jobs := 24
	if raceEnabled {
		jobs = 12 // each of the ways that there are to treat a job, in each producer
	}
	s := open(t, h)
	var ended, won atomic.Int64
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range jobs {
				if err := hammerJob(s, fmt.Sprintf("%d-%d", p, i), fmt.Sprint("w", p%3), i, &ended, &won); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				list, err := s.Jobs(t.Context(), record.ListQuery{Worker: "w1", Limit: 5})
				if err == nil && len(list) > 0 {
					_, err = s.Job(t.Context(), list[0].ID)
				}
				if err == nil {
					_, err = s.Claim(t.Context(), "w0", record.Place{}, 5)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	if ended.Load() != int64(producers*jobs) {
		t.Fatalf("%d jobs ended %d times", producers*jobs, ended.Load())
	}
	s.checkCounts()
}

// hammerJob submits a job and lets two settle each of its tasks while a third
// may cancel it. Every task ends once, and so does the job.
func hammerJob(s store, id, worker string, i int, ended, won *atomic.Int64) error {
	n := 1 + i%3
	res, err := commit(s.Store, &record.Submit{Job: spec(id, worker, tasks(n))})
	if err != nil || res[0].Err != nil {
		return fmt.Errorf("submit %s: %w, %+v", id, err, res)
	}
	key := res[0].Key
	ops := []record.Op{&record.Cancel{ID: id, At: epoch}}
	for task := range n {
		ops = append(ops, settlement(key+record.Key(task), record.Succeeded), settlement(key+record.Key(task), record.Dead))
	}
	if i%4 != 0 {
		ops = ops[1:]
	}
	errs := make(chan error, len(ops))
	for _, op := range ops {
		s.Commit([]record.Op{op}, func(res []record.OpResult, err error) {
			if err == nil && res[0].JobEnded {
				ended.Add(1)
			}
			if err == nil && res[0].Err == nil {
				won.Add(1)
			}
			errs <- err
		})
	}
	for range ops {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
