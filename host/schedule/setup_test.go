package schedule_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/host/scope"
)

// simClock is the time of a bubble, put forward or back by hand.
type simClock struct {
	mu     sync.Mutex // protects the fields below
	ahead  time.Duration
	alarms map[*simAlarm]bool
}

func (c *simClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.ahead)
}

// jump sets the clock, as a person or a time server does.
func (c *simClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
	for a := range c.alarms {
		a.ring()
	}
}

func (c *simClock) Alarm(*scope.Scope) (schedule.Alarm, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &simAlarm{clock: c, bell: make(chan struct{}, 1)}
	if c.alarms == nil {
		c.alarms = map[*simAlarm]bool{}
	}
	c.alarms[a] = true
	return a, nil
}

type simAlarm struct {
	clock *simClock
	bell  chan struct{}
	timer *time.Timer
}

func (a *simAlarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

func (a *simAlarm) Set(at time.Time) error {
	if a.timer != nil {
		a.timer.Stop()
	}
	if !at.IsZero() {
		a.timer = time.AfterFunc(at.Sub(a.clock.Now()), a.ring)
	}
	return nil
}

func (a *simAlarm) Rings() <-chan struct{} { return a.bell }

func (a *simAlarm) Close() error {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	delete(a.clock.alarms, a)
	return a.Set(time.Time{})
}

// keeper is a store that keeps schedules.
type keeper interface {
	record.Store
	schedule.Store
}

// site is a store with what runs on it, one host after the other.
type site struct {
	t     testing.TB
	clock *simClock
	store keeper
	queue *queue.Queue // nil while the host is down
	*schedule.Scheduler
	stop func()
	// worker is what the queue knows of the worker "w".
	worker queue.Worker

	mu     sync.Mutex // protects the fields below
	events []jobhost.Event
	counts map[schedule.Outcome]int
	lates  []time.Duration
	// onFired is called for every job that a tick creates.
	onFired func(id string)
	damaged string // id of a job that can't be read
}

// jobs is the queue, of which a job may be damaged.
type jobs struct {
	*queue.Queue
	s *site
}

func (j jobs) Job(ctx context.Context, id string) (jobhost.Job, error) {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if id == j.s.damaged {
		return jobhost.Job{}, &jobhost.Error{Code: jobhost.CodeDamaged, Message: "job " + id + " is damaged"}
	}
	return j.Queue.Job(ctx, id)
}

func newSite(t testing.TB) *site {
	return &site{
		t: t, clock: &simClock{}, store: queuetest.NewMemory(), counts: map[schedule.Outcome]int{},
		worker: queue.Worker{Name: "w", Capacity: 10_000, Retry: jobhost.DefaultRetry(), Timeout: time.Second},
	}
}

// start starts a host with the schedules.
func (s *site) start(schedules ...schedule.Schedule) {
	s.t.Helper()
	if err := s.tryStart(schedules...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) tryStart(schedules ...schedule.Schedule) error {
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	s.queue, err = queue.New(ctx, s.store, queue.Config{Workers: []queue.Worker{s.worker}, Publish: s.publish})
	if err != nil {
		cancel()
		return err
	}
	s.Scheduler = schedule.New(schedule.Config{
		Queue: jobs{s.queue, s}, Store: s.store, Clock: s.clock, Publish: s.publish,
		Count: func(_ string, o schedule.Outcome, n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.counts[o] += n
		},
		Late: func(_ string, late time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lates = append(s.lates, late)
		},
	})
	root := scope.New(context.Background(), "site")
	s.stop = func() {
		cancel()
		if report, _ := root.Join(context.Background()); report.Primary != nil {
			s.t.Error(report.Primary)
		}
		_ = s.queue.Close(context.Background())
		s.queue = nil
	}
	if err := s.Set(ctx, schedules); err != nil {
		s.stop()
		return err
	}
	return s.Start(ctx, root)
}

func (s *site) publish(e jobhost.Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	onFired := s.onFired
	s.mu.Unlock()
	switch {
	case e.Kind == jobhost.EventEnded:
		s.JobEnded(e.Job)
	case e.Kind == jobhost.EventTickFired && onFired != nil:
		onFired(e.Job)
	}
}

// close ends the host, if it runs, and the store.
func (s *site) close() {
	if s.queue != nil {
		s.stop()
	}
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

// ticks returns the ticks of which jobs were made, in the order of the jobs,
// written in a short form.
func (s *site) ticks() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == jobhost.EventTickFired {
			list = append(list, e.Tick.UTC().Format("01-02T15:04"))
		}
	}
	return list
}

func (s *site) count(o schedule.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[o]
}

// end ends a job the short way.
func (s *site) end(id string) {
	if _, err := s.queue.Cancel(context.Background(), id); err != nil {
		s.t.Error(err)
	}
}

// of returns a schedule of the worker w.
func of(t testing.TB, expr string, change ...func(*schedule.Schedule)) schedule.Schedule {
	t.Helper()
	timing, err := schedule.Cron(expr, "")
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.Schedule{Name: "s", Timing: timing, Job: jobhost.Spec{Worker: "w", Payload: []byte("x")}}
	for _, c := range change {
		c(&s)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

func catchUp(c jobhost.CatchUp) func(*schedule.Schedule) {
	return func(s *schedule.Schedule) { s.CatchUp = c }
}

func overlap(o jobhost.Overlap) func(*schedule.Schedule) {
	return func(s *schedule.Schedule) { s.Overlap = o }
}
