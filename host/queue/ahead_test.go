package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// lives runs queues on one store, one after the other, each while the clock shows another
// time; what is kept is kept for a day. A queue tidies as long as it is there.
type lives struct {
	t   *testing.T
	dir string
	log bytes.Buffer
}

func (l *lives) live(at time.Duration, do func(f *fixture)) {
	l.t.Helper()
	l.log.Reset()
	synctest.Test(l.t, func(t *testing.T) {
		time.Sleep(at)
		store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: l.dir, Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		f := reopen(t, store, func(c *queue.Config) {
			c.Workers[0].Retention = jobhost.Retention{Succeeded: 24 * time.Hour, Dead: 24 * time.Hour, Cancelled: 24 * time.Hour}
			c.Logger = slog.New(slog.NewTextHandler(&l.log, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		var tidy sync.WaitGroup
		tidy.Go(func() { _ = f.Tidy(ctx) })
		do(f)
		cancel()
		tidy.Wait()
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

const (
	aDay  = 24 * time.Hour
	aYear = 365 * aDay
)

// A clock that is a year ahead for a while removes nothing before its time, and nothing that
// was written meanwhile waits, or is kept, for a year.
func TestClockAYearAhead(t *testing.T) {
	t.Parallel()
	l := &lives{t: t, dir: t.TempDir()}
	l.live(aDay, func(f *fixture) {
		f.submit(jobhost.Spec{ID: "old"})
		f.settle(f.take(f.Slot("w")), succeeded("ok"))
		f.submit(jobhost.Spec{ID: "later", Delay: 48 * time.Hour})
	})
	for _, after := range []time.Duration{0, 30 * time.Minute} { // a restart doesn't make the clock right
		l.live(aDay+aYear+after, func(f *fixture) {
			time.Sleep(20 * time.Minute)
			synctest.Wait() // the log is written elsewhere
			if f.gone("old") {
				f.t.Error("a clock that is ahead has removed a job")
			}
			if after == 0 && !strings.Contains(l.log.String(), "nothing is removed for an hour") {
				f.t.Errorf("the log says nothing of the clock: %s", &l.log)
			}
			if after != 0 {
				return
			}
			lease := f.take(f.Slot("w"))
			if lease.Job.ID != "later" { // its time has come, as far as the host can tell
				f.t.Errorf("took %s", lease.Job.ID)
			}
			f.settle(lease, succeeded("ok"))
			f.submit(jobhost.Spec{ID: "retried"})
			f.settle(f.take(f.Slot("w")), failed(true))
			time.Sleep(2 * time.Second)
			f.submit(jobhost.Spec{ID: "ended", UniqueKey: "k", UniqueFor: 10 * time.Hour, Retention: 48 * time.Hour})
			for {
				lease := f.take(f.Slot("w"))
				if lease.Job.ID == "ended" {
					f.settle(lease, succeeded("ok"))
					break
				}
				f.settle(lease, failed(true))
			}
			f.submit(jobhost.Spec{ID: "given-up", Delay: 6 * time.Hour, Deadline: 7 * time.Hour})
			f.submit(jobhost.Spec{ID: "delayed", Delay: 5 * time.Hour})
			if err := f.ChangeKey(f.t.Context(), "w", 0, record.KVChange{Key: "k", Value: []byte("v"), Expires: record.MillisOf(f.Now().Add(3 * time.Hour))}); err != nil {
				f.t.Fatal(err)
			}
		})
	}
	l.live(aDay+2*time.Hour, func(f *fixture) {
		synctest.Wait()
		if !strings.Contains(l.log.String(), "the clock was set back") {
			f.t.Errorf("the log says nothing of the clock: %s", &l.log)
		}
		slot, began := f.Slot("w"), time.Now()
		f.settle(f.take(slot), succeeded("ok"))
		if took := time.Since(began); took > time.Minute {
			f.t.Errorf("a job that was to be retried waits for %v", took)
		}
		lease := f.take(slot)
		if took := time.Since(began); lease.Job.ID != "delayed" || took > 6*time.Hour || took < 4*time.Hour {
			f.t.Errorf("%s runs after %v", lease.Job.ID, took)
		}
		f.settle(lease, succeeded("ok"))
		if _, err := f.Key(f.t.Context(), "w", "k"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			f.t.Errorf("a key with a lifetime: %v", err)
		}
		time.Sleep(aDay)
		if job := f.job("given-up"); job.State != jobhost.Dead {
			f.t.Errorf("a job with a deadline is %s", job.State)
		}
		if !f.gone("old") || f.gone("ended") {
			f.t.Errorf("old is gone: %v, ended is gone: %v", f.gone("old"), f.gone("ended"))
		}
		if again, err := f.Submit(f.t.Context(), jobhost.Spec{Worker: "w", UniqueKey: "k", UniqueFor: time.Hour}); err != nil || again.ID == "ended" {
			f.t.Errorf("the unique key holds still: %+v, %v", again, err)
		}
		time.Sleep(aDay)
		if !f.gone("ended") {
			f.t.Error("a job that ended in a year is kept until then")
		}
	})
	l.live(aDay+3*time.Hour+3*aDay, func(f *fixture) { // which is no leap worth a word
		synctest.Wait()
		if l.log.Len() != 0 {
			f.t.Errorf("the log says %s", &l.log)
		}
	})
}

// The host says that the system's clock was set while it runs.
func TestClockSetWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var jump atomic.Int64
		f := setup(t, func(c *queue.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		f.SetWall(func() time.Time { return time.Now().Add(time.Duration(jump.Load())) })
		f.tidy()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if log.Len() != 0 {
			t.Errorf("without a jump the log says %s", &log)
		}
		jump.Store(int64(-aYear))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), "clock was set"); n != 1 {
			t.Errorf("it says so %d times: %s", n, &log)
		}
	})
}
