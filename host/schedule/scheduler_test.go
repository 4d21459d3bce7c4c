package schedule_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/schedule"
)

// bubble runs a test with a site in a bubble, in which it is 2000-01-01 00:00 UTC.
func bubble(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.close()
		test(t, s)
	})
}

// pass lets time pass and everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *site) want(ticks string, counts map[schedule.Outcome]int) {
	s.t.Helper()
	if got := strings.Join(s.ticks(), " "); got != ticks {
		s.t.Errorf("got ticks %q, want %q", got, ticks)
	}
	for o, n := range counts {
		if got := s.count(o); got != n {
			s.t.Errorf("got %d %s, want %d", got, o, n)
		}
	}
}

func TestFires(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 * * * *", overlap(jobhost.OverlapAllow), func(s *schedule.Schedule) {
			s.Job.Labels = map[string]string{"team": "storage"}
			s.Job.Priority = jobhost.High
		}))
		pass(2*time.Hour + time.Minute)
		s.want("01-01T01:00 01-01T02:00", map[schedule.Outcome]int{schedule.Fired: 2, schedule.CaughtUp: 0})
		job, err := s.queue.Job(t.Context(), "s.20000101T020000Z")
		if err != nil {
			t.Fatal(err)
		}
		if job.Labels["schedule"] != "s" || job.Labels["schedule.tick"] != "2000-01-01T02:00:00Z" || job.Labels["team"] != "storage" || job.Priority != jobhost.High {
			t.Errorf("got job %+v", job)
		}
		if !job.CreatedAt.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) {
			t.Errorf("the job was made at %v", job.CreatedAt)
		}
		got, err := s.Schedule(t.Context(), "s")
		if err != nil || got.LastJob != job.ID || !got.LastTick.Equal(job.CreatedAt) || got.Next[0].Hour() != 3 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestYears lets a schedule fire for years, over all changes of the clocks.
func TestYears(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		timing, err := schedule.Cron("30 2 * * *", "America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		daily := of(t, "0 0 * * *", overlap(jobhost.OverlapAllow))
		daily.Timing = timing
		s.start(daily)
		pass(2 * 365 * 24 * time.Hour)
		ticks := s.ticks()
		if len(ticks) != 2*365 {
			t.Errorf("fired %d times in 730 days", len(ticks))
		}
		for _, special := range []string{"04-02T07:00", "10-29T07:30"} { // of the year 2000
			if !strings.Contains(strings.Join(ticks, " "), special) {
				t.Errorf("did not fire at %s UTC", special)
			}
		}
	})
}

func TestDowntime(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*schedule.Schedule)
		down   time.Duration
		want   string
		counts map[schedule.Outcome]int
	}{
		{"none", catchUp(jobhost.CatchUpNone), 3 * time.Hour, "01-01T01:00 01-01T05:00", map[schedule.Outcome]int{schedule.Missed: 3, schedule.Fired: 2}},
		{"none, back soon enough", catchUp(jobhost.CatchUpNone), 30*time.Minute + 40*time.Second, "01-01T01:00 01-01T02:00 01-01T03:00", map[schedule.Outcome]int{schedule.Missed: 0, schedule.Fired: 3}},
		{"one", catchUp(jobhost.CatchUpOne), 3 * time.Hour, "01-01T01:00 01-01T04:00 01-01T05:00", map[schedule.Outcome]int{schedule.Missed: 2, schedule.CaughtUp: 1, schedule.Fired: 2}},
		{"all", catchUp(jobhost.CatchUpAll), 3 * time.Hour, "01-01T01:00 01-01T02:00 01-01T03:00 01-01T04:00 01-01T05:00", map[schedule.Outcome]int{schedule.Missed: 0, schedule.CaughtUp: 3}},
		{"all, bounded", func(s *schedule.Schedule) { s.CatchUp, s.CatchUpLimit = jobhost.CatchUpAll, 2 }, 50 * time.Hour, "01-01T01:00 01-03T02:00 01-03T03:00 01-03T04:00", map[schedule.Outcome]int{schedule.Missed: 48, schedule.CaughtUp: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				hourly := of(t, "0 * * * *", overlap(jobhost.OverlapAllow), tt.change)
				s.start(hourly)
				pass(90 * time.Minute)
				s.stop()
				pass(tt.down)
				s.start(hourly)
				pass(time.Hour)
				s.want(tt.want, tt.counts)
			})
		})
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy jobhost.Overlap
		want   string
		counts map[schedule.Outcome]int
	}{
		{jobhost.OverlapAllow, "01-01T01:00 01-01T02:00 01-01T03:00 01-01T04:00", nil},
		{jobhost.OverlapSkip, "01-01T01:00 01-01T04:00", map[schedule.Outcome]int{schedule.Skipped: 2}},
		{jobhost.OverlapQueue, "01-01T01:00 01-01T02:00 01-01T03:00 01-01T04:00", map[schedule.Outcome]int{schedule.Queued: 2, schedule.Skipped: 0}},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				s.start(of(t, "0 * * * *", overlap(tt.policy)))
				pass(210 * time.Minute)
				if got, _ := s.Schedule(t.Context(), "s"); tt.policy == jobhost.OverlapQueue && got.Waiting != 2 {
					t.Errorf("%d ticks wait, want 2", got.Waiting)
				}
				s.mu.Lock()
				s.onFired = func(id string) { time.AfterFunc(time.Second, func() { s.end(id) }) }
				s.mu.Unlock()
				s.end("s.20000101T010000Z")
				pass(time.Hour)
				s.want(tt.want, tt.counts)
			})
		})
	}
}

// A job that is damaged doesn't run, so a schedule doesn't wait for its end.
func TestOverlapWithADamagedJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 * * * *", overlap(jobhost.OverlapSkip)))
		pass(90 * time.Minute)
		s.mu.Lock()
		s.damaged = "s.20000101T010000Z"
		s.mu.Unlock()
		pass(2 * time.Hour)
		s.want("01-01T01:00 01-01T02:00", map[schedule.Outcome]int{schedule.Skipped: 1})
	})
}

// TestQueueBound fills the place where ticks wait.
func TestQueueBound(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 * * * *", overlap(jobhost.OverlapQueue)))
		pass(105*time.Hour + time.Minute)
		s.want("01-01T01:00", map[schedule.Outcome]int{schedule.Queued: schedule.MaxWaiting, schedule.Skipped: 4})
	})
}

// TestClockJumps sets the clock while the host runs.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 12 * * *", overlap(jobhost.OverlapAllow)))
		pass(13 * time.Hour)
		s.clock.jump(-day) // it is noon again in 23 hours
		pass(day + time.Hour)
		s.want("01-01T12:00", nil)
		if got, _ := s.Schedule(t.Context(), "s"); got.Next[0].Day() != 2 {
			t.Errorf("the next tick is %v", got.Next[0])
		}
		pass(23 * time.Hour)
		s.want("01-01T12:00 01-02T12:00", nil)
		s.clock.jump(day) // past noon of the third
		pass(0)
		s.want("01-01T12:00 01-02T12:00 01-03T12:00", map[schedule.Outcome]int{schedule.CaughtUp: 1})
		pass(day)
		s.want("01-01T12:00 01-02T12:00 01-03T12:00 01-04T12:00", map[schedule.Outcome]int{schedule.Missed: 0})
		s.clock.jump(10 * day) // as after a long sleep of the machine
		pass(0)
		s.want("01-01T12:00 01-02T12:00 01-03T12:00 01-04T12:00 01-14T12:00", map[schedule.Outcome]int{schedule.Missed: 9})
		// Far ahead by mistake, and back: a resume puts it right.
		s.clock.jump(-10 * day)
		if _, err := s.ResumeSchedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		pass(day)
		s.want("01-01T12:00 01-02T12:00 01-03T12:00 01-04T12:00 01-14T12:00 01-05T12:00", nil)
		// A tick that has a job doesn't get another one even then.
		s.clock.jump(-day)
		if _, err := s.ResumeSchedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		pass(day)
		s.want("01-01T12:00 01-02T12:00 01-03T12:00 01-04T12:00 01-14T12:00 01-05T12:00", map[schedule.Outcome]int{schedule.Duplicate: 1})
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		hourly := of(t, "0 * * * *", catchUp(jobhost.CatchUpAll), overlap(jobhost.OverlapAllow))
		s.start(hourly)
		pass(90 * time.Minute)
		if got, err := s.PauseSchedule(t.Context(), "s"); err != nil || !got.Paused || len(got.Next) != 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
		pass(2 * time.Hour)
		s.stop()
		s.start(hourly) // a pause outlasts a restart
		pass(2 * time.Hour)
		s.want("01-01T01:00", nil)
		receipt, err := s.RunSchedule(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		job, err := s.queue.Job(t.Context(), receipt.ID)
		if err != nil || job.Labels["schedule"] != "s" || job.Labels["schedule.tick"] != "" {
			t.Errorf("got %+v, %v", job, err)
		}
		if got, err := s.ResumeSchedule(t.Context(), "s"); err != nil || got.Paused || got.LastJob != receipt.ID {
			t.Fatalf("got %+v, %v", got, err)
		}
		pass(time.Hour)
		s.want("01-01T01:00 01-01T06:00", map[schedule.Outcome]int{schedule.Missed: 0, schedule.Manual: 1})
	})
}

// TestReload changes, removes and returns schedules, over a restart too.
func TestReload(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		name := "while it runs"
		if restart {
			name = "over a restart"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				set := func(schedules ...schedule.Schedule) {
					if restart {
						s.stop()
						s.start(schedules...)
					} else if err := s.Set(t.Context(), schedules); err != nil {
						t.Fatal(err)
					}
				}
				all := []func(*schedule.Schedule){catchUp(jobhost.CatchUpAll), overlap(jobhost.OverlapAllow)}
				s.start(of(t, "0 * * * *", all...))
				pass(70 * time.Minute) // 01:10
				set(of(t, "30 * * * *", all...))
				pass(time.Hour) // 02:10; not caught up: 00:30
				set()
				pass(time.Hour) // 03:10
				if list, err := s.Schedules(t.Context()); len(list) != 0 || err != nil {
					t.Error("a schedule that was removed is there")
				}
				set(of(t, "30 * * * *", all...)) // not caught up: 02:30
				pass(time.Hour)
				set(of(t, "30 * * * *", append(all, func(s *schedule.Schedule) { s.Job.Payload = []byte("other") })...))
				pass(time.Hour)
				s.want("01-01T01:00 01-01T01:30 01-01T03:30 01-01T04:30", map[schedule.Outcome]int{schedule.Missed: 0})
				job, err := s.queue.Job(t.Context(), "s.20000101T043000Z")
				if err != nil || job.PayloadSize != len("other") {
					t.Errorf("got %+v, %v", job, err)
				}
			})
		})
	}
}

// TestForgotten lets a paused schedule be gone for a while, and for long.
func TestForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		hourly := of(t, "0 * * * *")
		s.start(hourly)
		if _, err := s.PauseSchedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			gone   time.Duration
			paused bool
		}{{80 * 24 * time.Hour, true}, {100 * 24 * time.Hour, false}} {
			s.stop()
			s.start()
			pass(step.gone)
			s.stop()
			s.start()
			s.stop()
			s.start(hourly)
			if got, err := s.Schedule(t.Context(), "s"); err != nil || got.Paused != step.paused {
				t.Errorf("after %v: got %+v, %v", step.gone, got, err)
			}
		}
	})
}

// TestRefused lets the queue be full when a tick comes.
func TestRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.worker.Capacity = 2
		s.start(of(t, "0 * * * *", catchUp(jobhost.CatchUpAll), overlap(jobhost.OverlapAllow)))
		pass(4*time.Hour + time.Minute)
		s.want("01-01T01:00 01-01T02:00", nil)
		got, err := s.Schedule(t.Context(), "s")
		if err != nil || !strings.Contains(got.Refused, "the queue of w is full") {
			t.Errorf("got %+v, %v", got, err)
		}
		if n := s.count(schedule.Refused); n < 60 || n > 200 {
			t.Errorf("%d attempts were refused within two hours", n)
		}
		if _, err := s.RunSchedule(t.Context(), "s"); jobhost.CodeOf(err) != jobhost.CodeExhausted {
			t.Errorf("run: got %v", err)
		}
		s.end("s.20000101T010000Z")
		pass(2 * time.Minute)
		s.want("01-01T01:00 01-01T02:00 01-01T03:00", nil)
		s.end("s.20000101T020000Z")
		s.end("s.20000101T030000Z")
		pass(2 * time.Minute)
		s.want("01-01T01:00 01-01T02:00 01-01T03:00 01-01T04:00", nil)
		if got, _ := s.Schedule(t.Context(), "s"); got.Refused != "" {
			t.Errorf("still refused: %s", got.Refused)
		}
	})
}

// TestJitter wants delays that are spread, bounded and always the same.
func TestJitter(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 * * * *", overlap(jobhost.OverlapAllow), func(s *schedule.Schedule) { s.Jitter = 10 * time.Minute }))
		pass(101 * time.Hour)
		var sum time.Duration
		seen := map[time.Duration]bool{}
		for i := range 100 {
			tick := time.Date(2000, 1, 1, 1+i, 0, 0, 0, time.UTC)
			job, err := s.queue.Job(t.Context(), "s."+tick.Format("20060102T150405Z"))
			if err != nil {
				t.Fatal(err)
			}
			delay := job.Tasks[0].ReadyAt.Sub(tick)
			if delay < 0 || delay > 10*time.Minute {
				t.Fatalf("the job of %v is delayed by %v", tick, delay)
			}
			sum += delay
			seen[delay] = true
		}
		if mean := sum / 100; mean < 4*time.Minute || mean > 6*time.Minute || len(seen) < 95 {
			t.Errorf("100 delays are %v on average, %d different ones", mean, len(seen))
		}
	})
}

// TestManualJobsCount requires a job run by hand to count as open.
func TestManualJobsCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		s.start(of(t, "0 * * * *"))
		receipt, err := s.RunSchedule(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		pass(90 * time.Minute)
		s.want("", map[schedule.Outcome]int{schedule.Skipped: 1, schedule.Manual: 1})
		s.end(receipt.ID)
		pass(time.Hour)
		s.want("01-01T02:00", nil)
	})
}

// TestForeignIDs: no other job keeps a tick from making its own.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *site) {
		// One of a host that still took such ids.
		old := &record.JobSpec{ID: "s.20000101T010000Z", Worker: "w", Tasks: 1, MaxAttempts: 1, Labels: map[string]string{"schedule": "other"}}
		done := make(chan error, 1)
		s.store.Commit([]record.Op{&record.Submit{Job: old}}, func(r []record.OpResult, err error) { done <- cmp.Or(err, r[0].Err) })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.start(of(t, "0 * * * *", overlap(jobhost.OverlapAllow)))
		for hour := range 8 {
			spec := jobhost.Spec{Worker: "w", ID: fmt.Sprintf("s.20000101T%02d0000Z", hour+1)}
			_, outside := s.queue.Submit(t.Context(), spec)
			_, child := s.queue.SubmitChild(t.Context(), spec, &record.Parent{ID: old.ID})
			for _, err := range []error{outside, child} {
				if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "a schedule's tick") {
					t.Errorf("the id of a tick was taken: %v", err)
				}
			}
		}
		pass(8 * time.Hour)
		if got := len(s.ticks()); got != 8 || s.count(schedule.Duplicate) != 0 {
			t.Errorf("8 ticks made %d jobs, %d were taken for duplicates", got, s.count(schedule.Duplicate))
		}
		page, err := s.queue.Jobs(t.Context(), jobhost.Filter{Limit: 100})
		if err != nil || len(page.Jobs) != 9 {
			t.Errorf("there are %d jobs, want 9: %v", len(page.Jobs), err)
		}
	})
}
