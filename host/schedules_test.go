package host_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/schedule"
)

func everySecond(t *testing.T) schedule.Schedule {
	t.Helper()
	timing, err := schedule.Every(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Schedule{
		Name: "beat", Timing: timing, Overlap: jobhost.OverlapQueue,
		Job: jobhost.Spec{Worker: "test", Entry: "echo", Payload: []byte("tick")},
	}
}

// TestScheduleReload adds a schedule to a host that runs, waits for a job of it,
// and takes it away again.
func TestScheduleReload(t *testing.T) {
	t.Parallel()
	cfg := hosttest.Config(t)
	next := host.Update{Workers: slices.Clone(cfg.Workers), Schedules: []schedule.Schedule{everySecond(t)}}
	cfg.Reread = func(context.Context) (host.Update, error) { return next, nil }
	cfg.Metrics = metrics.New()
	fired := make(chan string, 100)
	cfg.OnEvent = func(e jobhost.Event) {
		if e.Kind == jobhost.EventTickFired {
			fired <- e.Job
		}
	}
	h, _ := run(t, cfg)
	if _, err := h.Reload(t.Context(), "test"); err != nil { // one worker: no schedules
		t.Fatal(err)
	}
	if got, err := h.Schedule(t.Context(), "yearly"); err != nil || got.Name != "yearly" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := h.Reload(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second waits for the end of the first, or comes after it
		job := wait(t, h, <-fired)
		if job.State != jobhost.Succeeded || job.Labels[jobhost.LabelSchedule] != "beat" {
			t.Errorf("got job %+v", job)
		}
	}
	if _, err := h.SetWorkers(t.Context(), cfg.Workers); err != nil { // schedules stay
		t.Fatal(err)
	}
	list, err := h.Schedules(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "beat" || list[0].LastTick == nil {
		t.Errorf("got %+v, %v", list, err)
	}
	next.Schedules = nil
	if _, err := h.Reload(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Schedule(t.Context(), "beat"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a schedule that was removed: got %v", err)
	}
	families, err := cfg.Metrics.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, want := range []string{"jobhost_schedule_fires_total", "jobhost_schedule_lateness_seconds"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no metric %s", want)
		}
	}
}

// aheadStore is a store that hosts share, whose clock is a day ahead of this machine's.
type aheadStore struct{ *pgqueue.Store }

func (s aheadStore) Now() time.Time { return s.Store.Now().Add(24 * time.Hour) }

// TestSchedulesGoByTheStoresClock: hosts that share a store decide about ticks by its clock, however far their own are ahead:
// else those of the host that led would be decided for the next one, which would wait until they are due.
func TestSchedulesGoByTheStoresClock(t *testing.T) {
	t.Parallel()
	cfg := hosttest.Config(t)
	onPostgres(t, &cfg)
	cfg.Store = aheadStore{cfg.Store.(*pgqueue.Store)}
	cfg.Schedules = []schedule.Schedule{everySecond(t)}
	fired := make(chan string, 100)
	cfg.OnEvent = func(e jobhost.Event) {
		if e.Kind == jobhost.EventTickFired {
			fired <- e.Job
		}
	}
	h, _ := run(t, cfg)
	wait(t, h, <-fired)
	got, err := h.Schedule(t.Context(), "beat")
	if err != nil || got.LastTick == nil || time.Until(*got.LastTick) < 12*time.Hour {
		t.Errorf("got %+v, %v", got, err)
	}
}

// bareStore is a store that keeps no schedules.
type bareStore struct{ record.Store }

func TestScheduleConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*host.Config)
		want   string
	}{
		{"store", func(c *host.Config) { c.Store = bareStore{c.Store} }, "this store keeps no schedules"},
		{"twice", func(c *host.Config) { c.Schedules = append(c.Schedules, c.Schedules[0]) }, "schedule beat is there twice"},
		{"worker", func(c *host.Config) { c.Schedules[0].Job.Worker = "nobody" }, "schedule beat: there is no worker nobody"},
		{"name", func(c *host.Config) { c.Schedules[0].Name = "No Name" }, `"No Name" is not a schedule name`},
		{"timing", func(c *host.Config) { c.Schedules[0].Timing = schedule.Timing{} }, "it is never due"},
		{"jitter", func(c *host.Config) { c.Schedules[0].Jitter = time.Minute }, "jitter 1m is not between 0s and 1s"},
		{"id", func(c *host.Config) { c.Schedules[0].Job.ID = "mine" }, "follow from its tick"},
		{"label", func(c *host.Config) { c.Schedules[0].Job.Labels = map[string]string{"schedule": "x"} }, "the schedule's own"},
		{"policies", func(c *host.Config) { c.Schedules[0].CatchUp, c.Schedules[0].Overlap = "some", "maybe" }, `catch_up "some" is not none, one or all`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.Schedules = []schedule.Schedule{everySecond(t)}
			tt.change(&cfg)
			if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A name that was mistyped is told from one that is unknown.
func TestUnknownSchedule(t *testing.T) {
	t.Parallel()
	h, _ := run(t, hosttest.Config(t))
	for name, want := range map[string]string{"yearli": "did you mean yearly?", "nightly-backup": "jobhost schedule ls"} {
		if _, err := h.Schedule(t.Context(), name); jobhost.CodeOf(err) != jobhost.CodeNotFound || jobhost.HintOf(err) != want {
			t.Errorf("%s: %v, hint %q", name, err, jobhost.HintOf(err))
		}
	}
}
