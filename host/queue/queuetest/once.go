package queuetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Tally is what a task of [Tallying] adds to when it succeeds.
const Tally = "tally"

// Tallying returns the effects of a task whose doing is easily told: it counts
// itself in the key [Tally], leaves a key of its own, which must not be there,
// and submits a child. [ExactlyOnce] checks what became of all such tasks.
func Tallying(job *record.JobRecord, task int) *record.Effects {
	mark := fmt.Sprintf("done/%s/%d", job.ID, task)
	child := spec(fmt.Sprintf("%s.%d", job.ID, task), "child-of-"+job.Worker, childOf(job, task))
	return &record.Effects{
		KV: []record.KVChange{
			{Key: Tally, Kind: record.KVAdd, Delta: 1},
			{Key: mark, Value: []byte("1"), Checked: true},
		},
		Jobs: []*record.JobSpec{child},
	}
}

// ExactlyOnce checks that keys and children are what one application of
// [Tallying] for each task of the worker that succeeded makes, whatever
// happened to the store. It is for tests that did something drastic to one.
func ExactlyOnce(ctx context.Context, s record.Store, worker string) error {
	want := map[string]bool{} // children, by id
	err := eachJob(ctx, s, worker, func(job *record.JobRecord) error {
		for _, task := range job.Tasks {
			if task.Status == record.Succeeded {
				want[fmt.Sprintf("%s.%d", job.ID, task.Index)] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	got, children := 0, 0
	entry, err := s.KV(ctx, worker, Tally, 0)
	if err == nil {
		got, err = strconv.Atoi(string(entry.Value))
	}
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
		return err
	}
	if got != len(want) {
		return fmt.Errorf("%d tasks have succeeded, and the tally is %d", len(want), got)
	}
	marks, err := s.KVList(ctx, record.KVQuery{Worker: worker, Prefix: "done/", Limit: 1 << 20})
	if err != nil || len(marks) != len(want) {
		return fmt.Errorf("%d tasks have succeeded, and %d have left a key: %w", len(want), len(marks), err)
	}
	for _, mark := range marks {
		id, task, _ := strings.Cut(strings.TrimPrefix(mark.Key, "done/"), "/")
		if !want[id+"."+task] {
			return fmt.Errorf("there is key %s of a task that has not succeeded", mark.Key)
		}
	}
	err = eachJob(ctx, s, "child-of-"+worker, func(child *record.JobRecord) error {
		children++
		if p := child.Parent; !want[child.ID] || p == nil || fmt.Sprintf("%s.%d", p.ID, p.Task) != child.ID {
			return fmt.Errorf("job %s is the child of %+v, which has not succeeded", child.ID, p)
		}
		return nil
	})
	if err == nil && children != len(want) {
		err = fmt.Errorf("%d tasks have succeeded, and there are %d children", len(want), children)
	}
	return err
}

// eachJob calls do for all jobs of a worker.
func eachJob(ctx context.Context, s record.Store, worker string, do func(*record.JobRecord) error) error {
	for below := record.Key(0); ; {
		jobs, err := s.Jobs(ctx, record.ListQuery{Worker: worker, Below: below, Limit: 100})
		if err != nil || len(jobs) == 0 {
			return err
		}
		for i := range jobs {
			if err := do(&jobs[i]); err != nil {
				return err
			}
		}
		below = jobs[len(jobs)-1].Key
	}
}

// testExactlyOnce lets several settle each task, with effects and without,
// some under leases that are lost, while the store is opened again and again.
func testExactlyOnce(t *testing.T, h Harness) {
	s := open(t, h)
	for round := range 4 {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for i := range 8 {
					if err := contend(s, fmt.Sprintf("%d-%d-%d", round, g, i), rng); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := ExactlyOnce(t.Context(), s.Store, "w"); err != nil {
			t.Fatal(err)
		}
		if h.Reopen != nil {
			s.Store = h.Reopen(t, s.Store)
		}
	}
	s.checkCounts()
}

// contend submits a job and settles its tasks several times over.
func contend(s store, id string, rng *rand.Rand) error {
	res, err := commit(s.Store, &record.Submit{Job: spec(id, "w", tasks(1+rng.IntN(3)))})
	if err != nil || res[0].Err != nil {
		return fmt.Errorf("submit %s: %w, %+v", id, err, res)
	}
	job, err := s.Job(context.Background(), id)
	if err != nil {
		return err
	}
	var ops []record.Op
	for _, task := range job.Tasks {
		success := effective(task.Key, Tallying(&job, task.Index))
		late := effective(task.Key, Tallying(&job, task.Index))
		late.Token = 1
		retry, dead := settlement(task.Key, record.Open), settlement(task.Key, record.Dead)
		retry.Effects, dead.Effects = Tallying(&job, task.Index), Tallying(&job, task.Index)
		ops = append(ops, success, success, late, late, retry, dead)
	}
	if rng.IntN(3) == 0 {
		ops = append(ops, &record.Cancel{ID: id, At: epoch})
	}
	rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	for part := range slices.Chunk(ops, 4) {
		res, err := commit(s.Store, part...)
		if err != nil {
			return err
		}
		for i, r := range res {
			if _, cancel := part[i].(*record.Cancel); r.Err != nil && !cancel && !errors.Is(r.Err, record.ErrFenced) {
				return fmt.Errorf("settle a task of %s: %w", id, r.Err)
			}
		}
	}
	return nil
}
