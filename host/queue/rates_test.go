package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// begin begins all tasks of a queue for a time as soon as they may, and returns when they have begun.
func begin(q *queue.Queue, d time.Duration) (at []time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	slot := q.Slot("w")
	for {
		lease, err := slot.Take(ctx)
		if err != nil {
			return at
		}
		at = append(at, time.Now())
		q.Settle(lease, queue.Report{Outcome: succeeded("")})
	}
}

// In no time more tasks begin than the rate has for it, and one burst, however many hosts lead one after the other and
// however they end.
func TestRateHoldsOverTakeovers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		every := time.Duration(rapid.IntRange(1, 5000).Draw(rt, "every")) * time.Millisecond
		burst := rapid.IntRange(1, 5).Draw(rt, "burst")
		type life struct {
			runs, away time.Duration
			crashes    bool
		}
		lives := make([]life, rapid.IntRange(2, 5).Draw(rt, "lives"))
		part := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 8*int(every)).Draw(rt, name))
		}
		for i := range lives {
			lives[i] = life{part("runs"), part("away"), rapid.Bool().Draw(rt, "crashes")}
		}
		synctest.Test(t, func(t *testing.T) {
			memory := queuetest.NewMemory()
			defer memory.Close()
			var at []time.Time
			for i, life := range lives {
				f := reopenAny(t, newShared(memory, 0), func(c *queue.Config) {
					c.Workers[0].Rate, c.Workers[0].RateBurst = jobhost.Rate{Count: 1, Per: every}, burst
				})
				if i == 0 {
					f.submit(jobhost.Spec{Tasks: 100})
				}
				at = append(at, begin(f.Queue, life.runs)...)
				synctest.Wait()
				if f.Stop(); !life.crashes {
					if err := f.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(life.away)
			}
			for i := range at {
				for j := i; j < len(at); j++ {
					if n, most := j-i+1, burst+int(at[j].Sub(at[i])/every); n > most {
						t.Fatalf("%d began within %v, of %d: at %v", n, at[j].Sub(at[i]), most, at)
					}
				}
			}
		})
	})
}

// A host that is stopped in good order takes its rate along, so that tasks begin at it even if it never runs for as long
// as lies between two of them. One that has crashed begins without a burst.
func TestRateGoesOnAfterAStop(t *testing.T) {
	t.Parallel()
	for _, crashes := range []bool{false, true} {
		t.Run(fmt.Sprint("crashes=", crashes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				memory := queuetest.NewMemory()
				defer memory.Close()
				began := 0
				for day := range 10 {
					f := reopenAny(t, memory, func(c *queue.Config) {
						c.Workers[0].Rate, c.Workers[0].RateBurst = jobhost.Rate{Count: 1, Per: 24 * time.Hour}, 2
					})
					if day == 0 {
						f.submit(jobhost.Spec{Tasks: 100})
					}
					began += len(begin(f.Queue, 24*time.Hour-time.Minute))
					synctest.Wait()
					if f.Stop(); !crashes {
						if err := f.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Minute)
				}
				want := 2 + 9
				if crashes {
					want = 2 // and no more: it crashes just before one may begin
				}
				if began != want {
					t.Errorf("%d tasks began, want %d", began, want)
				}
			})
		})
	}
}

// A rate that a reload has brought counts after a crash, too, also when the jobs are gone.
func TestRateOfAReloadHoldsAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := queuetest.NewMemory()
		defer memory.Close()
		w := queue.Worker{Name: "w", Capacity: 100, Timeout: time.Minute, Retry: jobhost.DefaultRetry()}
		f := reopenAny(t, memory)
		w.Rate, w.RateBurst = jobhost.Rate{Count: 1, Per: time.Minute}, 3
		f.Put(w)
		id := f.submit(jobhost.Spec{Tasks: 3})
		if n := len(begin(f.Queue, time.Second)); n != 3 {
			t.Fatalf("%d tasks began, want a burst", n)
		}
		synctest.Wait()
		if err := f.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		f.Stop()
		f = reopenAny(t, memory, func(c *queue.Config) { c.Workers[0] = w })
		f.submit(jobhost.Spec{Tasks: 3})
		if n := len(begin(f.Queue, time.Minute-time.Second)); n != 0 {
			t.Errorf("%d tasks began", n)
		}
	})
}
