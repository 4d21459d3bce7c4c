package schedule_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/schedule"
)

// TestHammer does everything at once while ticks come, and wants each tick to
// make at most one job, and all jobs that were asked for.
func TestHammer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.close()
		var defs []schedule.Schedule
		for _, policy := range []jobhost.Overlap{jobhost.OverlapAllow, jobhost.OverlapSkip, jobhost.OverlapQueue} {
			d := of(t, "* * * * *", overlap(policy))
			d.Name = string(policy)
			defs = append(defs, d)
		}
		s.onFired = func(id string) { time.AfterFunc(time.Second, func() { s.end(id) }) }
		s.start(defs...)
		const rounds = 50
		var group sync.WaitGroup
		for i := range defs {
			name := defs[i].Name
			for _, act := range []func() error{
				func() error {
					receipt, err := s.RunSchedule(t.Context(), name)
					if err == nil {
						s.end(receipt.ID)
					}
					return err
				},
				func() error { _, err := s.PauseSchedule(t.Context(), name); return err },
				func() error { _, err := s.ResumeSchedule(t.Context(), name); return err },
				func() error { s.Schedules(t.Context()); _, err := s.Schedule(t.Context(), name); return err },
				func() error { return s.Set(t.Context(), defs) },
			} {
				group.Go(func() {
					for range rounds {
						if err := act(); err != nil {
							t.Errorf("%s: %v", name, err)
						}
						time.Sleep(13 * time.Second)
					}
				})
			}
		}
		group.Wait()
		synctest.Wait()
		seen := map[string]bool{}
		for _, e := range s.events {
			if e.Kind != jobhost.EventTickFired {
				continue
			}
			if seen[e.Job] {
				t.Errorf("job %s was made twice", e.Job)
			}
			seen[e.Job] = true
		}
		if got := s.count(schedule.Manual); got != rounds*len(defs) || s.count(schedule.Duplicate) != 0 {
			t.Errorf("%d jobs were made by hand, want %d; %d duplicates", got, rounds*len(defs), s.count(schedule.Duplicate))
		}
	})
}
