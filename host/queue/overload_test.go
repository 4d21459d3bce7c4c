package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// overload is a worker that gets three times the jobs that it can do.
type overload struct {
	*testing.T
	q       *queue.Queue
	service time.Duration // of one task; there are two slots
	began   time.Time
	begun   []beginning
	refused int
}

// beginning is the start of an attempt.
type beginning struct {
	level         int
	key           string
	readyAt, when time.Time
}

// What the tests below let run, and what may wait.
const (
	overloadService  = 10 * time.Second
	overloadCapacity = 60
	noCapacity       = 1 << 20
)

// runOverload lets jobs arrive for a simulated time, chosen by next, and returns what ran.
func runOverload(t *testing.T, capacity int, aging, simulated time.Duration, next func() jobhost.Spec) *overload {
	t.Helper()
	store := queuetest.NewMemory()
	q, err := queue.New(context.Background(), store, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: capacity, Timeout: time.Hour, Retry: jobhost.DefaultRetry()}},
		Aging:   aging,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &overload{T: t, q: q, service: overloadService, began: time.Now()}
	begun := make(chan beginning, 1<<16)
	for range 2 {
		slot := q.Slot("w")
		go o.serve(slot, begun)
	}
	for i := 0; time.Since(o.began) < simulated; i++ {
		spec := next()
		spec.Worker, spec.ID = "w", fmt.Sprint(i)
		if _, err := q.Submit(context.Background(), spec); jobhost.CodeOf(err) == jobhost.CodeExhausted {
			o.refused++
		} else if err != nil {
			t.Fatal(err)
		}
		time.Sleep(o.service / 6) // three for each that is done
	}
	if err := q.Close(context.Background()); err != nil {
		t.Error(err)
	}
	time.Sleep(o.service) // the slots end
	synctest.Wait()
	_ = store.Close()
	close(begun)
	for b := range begun {
		o.begun = append(o.begun, b)
	}
	if want := int(2 * simulated / o.service); len(o.begun) < want*99/100 {
		t.Fatalf("%d tasks began, want %d: it is no overload", len(o.begun), want)
	}
	return o
}

// serve runs tasks, and removes their jobs, until the queue is closed.
func (o *overload) serve(slot *queue.Slot, begun chan<- beginning) {
	for {
		lease, err := slot.Take(context.Background())
		if err != nil {
			return
		}
		begun <- beginning{lease.Job.Priority.Level(), lease.Job.ConcurrencyKey, lease.ReadyAt, time.Now()}
		time.Sleep(o.service)
		o.q.Settle(lease, queue.Report{Outcome: succeeded("")})
		if err := o.q.Delete(context.Background(), lease.Job.ID); err != nil && jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			o.Error(err)
		}
	}
}

// checkFIFO wants the tasks of each level and key to begin in their order.
func (o *overload) checkFIFO() {
	last := map[string]time.Time{}
	for _, b := range o.begun {
		line := fmt.Sprint(b.level, "/", b.key)
		if b.readyAt.Before(last[line]) {
			o.Errorf("a task of %s that is ready since %v began after one since %v", line, b.readyAt, last[line])
		}
		last[line] = b.readyAt
	}
}

// Six hours of three times what can be done, in all priorities: each keeps
// flowing, and none waits longer than it takes to age to the top and to run
// what was there before.
func TestOverloadKeepsEveryPriorityFlowing(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{""}, {"", "a", "b", "c"}} {
		t.Run(fmt.Sprint("keys=", len(keys)), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const aging, simulated, window = time.Minute, 6 * time.Hour, 30 * time.Minute
				random := rand.New(rand.NewPCG(1, 2))
				o := runOverload(t, overloadCapacity, aging, simulated, func() jobhost.Spec {
					return jobhost.Spec{Priority: jobhost.PriorityAt(random.IntN(5)), ConcurrencyKey: keys[random.IntN(len(keys))]}
				})
				bound := 4*aging + overloadCapacity*o.service/2 + o.service
				if len(keys) > 1 {
					bound += overloadCapacity * o.service / 2 // keys take turns, and one has more tasks than its share
				}
				flow := map[[2]int]int{}
				for _, b := range o.begun {
					if wait := b.when.Sub(b.readyAt); wait > bound {
						t.Fatalf("a task of level %d with key %q waited for %v, more than %v", b.level, b.key, wait, bound)
					}
					flow[[2]int{b.level, int(b.when.Sub(o.began) / window)}]++
				}
				for level := range jobhost.Levels {
					for i := 1; i < int(simulated/window); i++ {
						if n := flow[[2]int{level, i}]; n < 20 {
							t.Errorf("%d tasks of level %d began in window %d", n, level, i)
						}
					}
				}
				o.checkFIFO()
			})
		})
	}
}

// A queue that takes everything grows by two tasks for each that is done, and
// background tasks still run: once they are old enough they come before what is
// newer, whatever it is.
func TestOverloadOfAQueueThatGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		const window = 20 * time.Minute
		o := runOverload(t, noCapacity, time.Minute, 2*time.Hour, func() jobhost.Spec {
			return jobhost.Spec{Priority: jobhost.PriorityAt(4 * random.IntN(2))}
		})
		low := map[time.Duration]int{}
		for _, b := range o.begun {
			low[b.when.Sub(o.began)/window] += b.level / 4
		}
		for i := range 6 {
			if n := low[time.Duration(i)]; n < 60 {
				t.Errorf("%d background tasks began in window %d, of 240", n, i)
			}
		}
		o.checkFIFO()
	})
}

// Without aging the lowest priority starves, which shows that the test above
// sees what it should.
func TestOverloadStarvesWithoutAging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		o := runOverload(t, noCapacity, -1, 2*time.Hour, func() jobhost.Spec {
			return jobhost.Spec{Priority: jobhost.PriorityAt(4 * random.IntN(2))}
		})
		low := 0
		for _, b := range o.begun {
			if b.level == 4 && b.when.Sub(o.began) > time.Minute {
				low++
			}
		}
		if low > 0 {
			t.Errorf("%d background tasks began although critical ones waited", low)
		}
	})
}

// One key floods the worker and three others have a job now and then: none of
// theirs waits longer than a round.
func TestOverloadIsFairToSmallKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		o := runOverload(t, overloadCapacity, -1, 6*time.Hour, func() jobhost.Spec {
			if n := random.IntN(90); n < 3 {
				return jobhost.Spec{ConcurrencyKey: fmt.Sprint("small-", n)}
			}
			return jobhost.Spec{ConcurrencyKey: "big"}
		})
		small := 0
		for _, b := range o.begun {
			if b.key == "big" {
				continue
			}
			small++
			if wait := b.when.Sub(b.readyAt); wait > 2*o.service {
				t.Errorf("a task of %s waited for %v", b.key, wait)
			}
		}
		if small < 30 {
			t.Errorf("only %d tasks of small keys got in", small)
		}
		o.checkFIFO()
	})
}
