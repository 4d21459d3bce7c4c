package queue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// kill submits n jobs that die at once, named by the prefix.
func (f *fixture) kill(prefix string, n int) {
	f.t.Helper()
	slot := f.Slot("w")
	for i := range n {
		f.submit(jobhost.Spec{ID: fmt.Sprintf("%s-%03d", prefix, i)})
		f.settle(f.take(slot), failed(false))
	}
}

func TestDeadLettersAreRetriedAtARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.kill("a", 100)
		began := time.Now()
		done, err := f.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadRetry, Rate: 20})
		if err != nil || done.Changed != 100 || done.Matched != 100 || done.Next != "" || len(done.Failed) != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		if took := time.Since(began); took < 4900*time.Millisecond || took > 5100*time.Millisecond {
			t.Errorf("100 letters at 20/s took %v", took)
		}
	})
}

// A call that would take too long ends with a cursor that goes on exactly there.
func TestSlowRetriesGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.kill("a", 50)
		change := jobhost.DeadChange{Action: jobhost.DeadRetry, Rate: 1}
		began, calls, changed := time.Now(), 0, 0
		for {
			done, err := f.ChangeDead(t.Context(), change)
			if err != nil || len(done.Failed) > 0 || done.Matched != done.Changed {
				t.Fatalf("%+v, %v", done, err)
			}
			calls, changed = calls+1, changed+done.Changed
			if change.Filter.Cursor = done.Next; done.Next == "" {
				break
			}
		}
		if took := time.Since(began); calls != 3 || changed != 50 || took > time.Minute {
			t.Errorf("%d letters with %d calls in %v", changed, calls, took)
		}
	})
}

func TestRetriesStopWhereTheQueueIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(cfg *queue.Config) { cfg.Workers[0].Capacity = 3 })
		f.kill("a", 5)
		done, err := f.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadRetry})
		if err != nil || done.Changed != 3 || len(done.Failed) != 1 || done.Failed[0].Error.Code != jobhost.CodeExhausted || done.Next == "" {
			t.Fatalf("%+v, %v", done, err)
		}
		page, err := f.Dead(t.Context(), jobhost.DeadFilter{})
		if err != nil || len(page.Letters) != 2 {
			t.Fatalf("%d letters are left, %v", len(page.Letters), err)
		}
	})
}

// A slow rate holds over the calls that it takes.
func TestSlowRateHoldsOverCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.kill("a", 10)
		change := jobhost.DeadChange{Action: jobhost.DeadRetry, Rate: 0.1}
		began := time.Now()
		for next := "first"; next != ""; change.Filter.Cursor = next {
			done, err := f.ChangeDead(t.Context(), change)
			if err != nil {
				t.Fatal(err)
			}
			next = done.Next
		}
		if took := time.Since(began); took < 90*time.Second || took > 110*time.Second {
			t.Errorf("10 letters at one in 10 s took %v", took)
		}
		_, err := f.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadRetry, Rate: 1e-12})
		wantCode(t, err, jobhost.CodeInvalid)
	})
}

// No jobs are not all jobs.
func TestNoJobsAreNoLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.kill("a", 1)
		_, err := f.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadDelete, Jobs: []string{}})
		wantCode(t, err, jobhost.CodeInvalid)
		f.wantState("a-000", jobhost.Dead)
	})
}

// Of jobs that are named only the dead tasks run again, and each job that had no
// turn is told.
func TestDeadTasksOfNamedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(cfg *queue.Config) { cfg.Workers[0].Capacity = 4 })
		slot := f.Slot("w")
		for _, id := range []string{"a", "b", "c"} {
			f.submit(jobhost.Spec{ID: id, Tasks: 4})
			if _, err := f.CancelTask(t.Context(), id, 3); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				f.settle(f.take(slot), failed(false))
			}
		}
		change := jobhost.DeadChange{Action: jobhost.DeadRetry, Jobs: []string{"a", "b", "c"}}
		for _, rate := range []float64{0, 0.1} {
			change.Rate = rate
			done, err := f.ChangeDead(t.Context(), change)
			switch {
			case err != nil:
				t.Fatal(err)
			case rate == 0:
				if done.Matched != 6 || done.Changed != 3 || len(done.Failed) != 2 || done.Failed[0].Job != "b" || done.Failed[1].Job != "c" {
					t.Fatalf("with too little room: %+v", done)
				}
			default:
				if done.Changed != 2 || len(done.Failed) != 2 || done.Failed[0].Job != "b" || done.Failed[0].Task != 2 || done.Failed[1].Job != "c" {
					t.Fatalf("with too little time: %+v", done)
				}
			}
			if job := f.job("a"); job.Tasks[3].State != jobhost.Cancelled {
				t.Errorf("a cancelled task became %v", job.Tasks[3].State)
			}
			for range done.Changed {
				f.settle(f.take(slot), succeeded(""))
			}
			change.Jobs = []string{"b", "c"}
		}
		done, err := f.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadRetry, Jobs: []string{"a"}})
		if err != nil || len(done.Failed) != 1 || done.Failed[0].Error.Code != jobhost.CodeConflict {
			t.Errorf("without dead tasks: %+v, %v", done, err)
		}
	})
}

func TestDeadSummary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.kill("old", 1)
		time.Sleep(100 * time.Hour)
		f.kill("new", 2)
		day, err := f.DeadSummary(t.Context(), jobhost.DeadQuery{})
		if err != nil || day.Deaths != 2 || len(day.Trend) != 24 || day.Trend[len(day.Trend)-1].Deaths != 2 {
			t.Errorf("the last day: %+v, %v", day, err)
		}
		week, err := f.DeadSummary(t.Context(), jobhost.DeadQuery{After: time.Now().Add(-7 * 24 * time.Hour)})
		if err != nil || week.Deaths != 3 || len(week.Trend) != 8 || len(week.Codes) != 1 || week.Codes[0].Deaths != 3 {
			t.Errorf("the last week: %+v, %v", week, err)
		}
		other, err := f.DeadSummary(t.Context(), jobhost.DeadQuery{Worker: "other"})
		if err != nil || other.Deaths != 0 || len(other.Workers) != 0 {
			t.Errorf("another worker: %+v, %v", other, err)
		}
		_, err = f.DeadSummary(t.Context(), jobhost.DeadQuery{After: time.Now(), Before: time.Now().Add(-2 * time.Hour)})
		wantCode(t, err, jobhost.CodeInvalid)
	})
}
