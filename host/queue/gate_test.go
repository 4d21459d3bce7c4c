package queue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// TestMaxMemory: running tasks together never take more than there is, and one
// that needs much has its turn while those that need little keep coming.
func TestMaxMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		needs := map[string]int64{"w": 60, "small": 30}
		f := setup(t, func(c *queue.Config) {
			c.Workers[0].Memory = needs["w"]
			small := c.Workers[0]
			small.Name, small.Memory = "small", needs["small"]
			c.Workers = append(c.Workers, small)
			c.MaxMemory = 100
		})
		for range 10 {
			f.submit(jobhost.Spec{Worker: "w"})
			f.submit(jobhost.Spec{Worker: "small"})
			f.submit(jobhost.Spec{Worker: "small"})
		}
		leases := make(chan *queue.Lease, 8)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, worker := range []string{"w", "w", "small", "small", "small", "small"} {
			go func() {
				slot := f.Slot(worker)
				for {
					lease, err := slot.Take(ctx)
					if err != nil {
						return
					}
					leases <- lease
				}
			}()
		}
		ran, sinceLarge := map[string]int{}, 0
		for range 30 {
			synctest.Wait()
			var used int64
			for range len(leases) {
				lease := <-leases
				used += needs[lease.Job.Worker]
				leases <- lease
			}
			if used > 100 || used == 0 {
				t.Fatalf("running tasks take %d of 100, after %v", used, ran)
			}
			lease := <-leases
			ran[lease.Job.Worker]++
			if sinceLarge++; lease.Job.Worker == "w" {
				sinceLarge = 0
			}
			if sinceLarge > 8 && ran["w"] < 10 {
				t.Fatalf("%d small tasks ran before a large one, after %v", sinceLarge, ran)
			}
			f.Settle(lease, queue.Report{Outcome: succeeded("")})
		}
		if ran["w"] != 10 || ran["small"] != 20 {
			t.Fatalf("ran %v", ran)
		}
	})
}

func TestWhyMaxMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) {
			c.Workers[0].Memory = 64 << 20
			c.MaxMemory = 100 << 20
		})
		f.submit(jobhost.Spec{ID: "first"})
		f.submit(jobhost.Spec{ID: "second"})
		f.take(f.Slot("w"))
		go func() { _, _ = f.Slot("w").Take(t.Context()) }()
		synctest.Wait()
		why, err := f.Why(t.Context(), "second")
		if err != nil || why.Code != "max_memory" {
			t.Fatalf("%+v, %v", why, err)
		}
		if want := "a task of worker w may take 64 MiB of memory, and running tasks have too much of the host's max_memory of 100 MiB"; why.Reason != want {
			t.Errorf("reason %q", why.Reason)
		}
	})
}

// TestSetMaxMemory: what waits for memory goes on when there is more, and what
// runs goes on when there is less.
func TestSetMaxMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) {
			c.Workers[0].Memory = 60
			c.MaxMemory = 100
		})
		leases := make(chan *queue.Lease, 8)
		for range 4 {
			f.submit(jobhost.Spec{})
			go func() {
				if lease, err := f.Slot("w").Take(t.Context()); err == nil {
					leases <- lease
				}
			}()
		}
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(leases) != n {
				t.Fatalf("%d tasks run, want %d", len(leases), n)
			}
		}
		want(1)
		f.SetMaxMemory(120)
		want(2)
		f.SetMaxMemory(60)
		want(2)
		f.Settle(<-leases, queue.Report{Outcome: succeeded("")})
		want(1) // the other one takes all there is now
		f.Settle(<-leases, queue.Report{Outcome: succeeded("")})
		want(1)
		f.SetMaxMemory(0)
		want(2)
	})
}
