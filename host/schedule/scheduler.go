package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/text"
)

// Store is what a [record.Store] must also provide for a host with schedules.
type Store interface {
	// Schedules returns the states of all schedules, by name.
	Schedules(ctx context.Context) ([]record.ScheduleState, error)
}

// Queue takes the jobs, like a [queue.Queue].
type Queue interface {
	Fire(ctx context.Context, firings []queue.Firing) ([]queue.Fired, error)
	Job(ctx context.Context, id string) (jobhost.Job, error)
}

// Config configures a scheduler. Queue and Store are required.
type Config struct {
	Queue Queue
	Store Store
	// Clock; nil = the system's.
	Clock Clock
	// Publish is called with events and must not block; nil = no call.
	Publish func(jobhost.Event)
	// Count is called with the outcome of ticks, Late with the delay between a
	// tick and the creation of its job; nil = no call.
	Count func(schedule string, outcome Outcome, n int)
	Late  func(schedule string, late time.Duration)
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
}

// Scheduler fires schedules. It is safe for concurrent use.
type Scheduler struct {
	cfg  Config
	turn *op.Semaphore // held while entries are changed
	wake chan struct{} // has a value when there may be something to do

	mu      sync.Mutex        // protects the fields below
	entries map[string]*entry // entries are replaced, never changed: see put
	watched map[string]bool   // ids of jobs whose end matters

	watching atomic.Int64 // len(watched)
}

// entry is a schedule and its state.
type entry struct {
	def   *Schedule
	state record.ScheduleState
	// next is the tick after state.Last; zero = none.
	next time.Time
	// refused is why the due tick could not create a job; it is retried at
	// retryAt, each time after twice the pause.
	refused error
	retryAt time.Time
	pause   time.Duration
}

// New returns a scheduler without schedules: [Scheduler.Set] sets them.
func New(cfg Config) *Scheduler {
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Publish == nil {
		cfg.Publish = func(jobhost.Event) {}
	}
	if cfg.Count == nil {
		cfg.Count = func(string, Outcome, int) {}
	}
	if cfg.Late == nil {
		cfg.Late = func(string, time.Duration) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Scheduler{
		cfg:     cfg,
		turn:    op.NewSemaphore(1),
		wake:    make(chan struct{}, 1),
		entries: map[string]*entry{},
		watched: map[string]bool{},
	}
}

// Start fires schedules in a goroutine of the scope until ctx ends.
func (s *Scheduler) Start(ctx context.Context, in *scope.Scope) error {
	return in.Go("schedules", func(own context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(own, func() { cancel(context.Cause(own)) })()
		return s.run(ctx, in)
	})
}

// run waits for the alarm, or to be woken, and fires what is due. The alarm is
// created when there is something to set it to.
func (s *Scheduler) run(ctx context.Context, in *scope.Scope) (err error) {
	var alarm Alarm
	var rings <-chan struct{}
	defer func() {
		if alarm != nil {
			err = errors.Join(err, alarm.Close())
		}
	}()
	for ctx.Err() == nil {
		next := s.fireDue(ctx)
		if alarm == nil && !next.IsZero() {
			if alarm, err = s.cfg.Clock.Alarm(in); err != nil {
				return fmt.Errorf("make an alarm for schedules: %w", err)
			}
			rings = alarm.Rings()
		}
		if alarm != nil {
			if err := alarm.Set(next); err != nil {
				return fmt.Errorf("set the alarm of schedules: %w", err)
			}
		}
		select {
		case <-rings:
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// JobEnded notifies the scheduler that a job has ended; it is cheap for jobs
// whose end doesn't matter.
func (s *Scheduler) JobEnded(id string) {
	if s.watching.Load() == 0 {
		return
	}
	s.mu.Lock()
	waited := s.watched[id]
	s.mu.Unlock()
	if waited {
		s.rouse()
	}
}

// rouse makes the scheduler look at everything again.
func (s *Scheduler) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// begin waits for the right to change entries; if it returns nil the caller
// must call end.
func (s *Scheduler) begin(ctx context.Context) error {
	_, err := op.Perform(ctx, s.turn.Acquire())
	return err
}

func (s *Scheduler) end() { s.turn.Release() }

// list returns the entries, ordered by name.
func (s *Scheduler) list() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*entry, 0, len(s.entries))
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		list = append(list, s.entries[name])
	}
	return list
}

// find returns an entry; not_found if there is none.
func (s *Scheduler) find(name string) (*entry, error) {
	if err := jobhost.CheckSchedule(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil {
		return e, nil
	}
	hint := "jobhost schedule ls"
	if near := text.Nearest(name, slices.Sorted(maps.Keys(s.entries))); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Field: "schedule", Message: fmt.Sprintf("there is no schedule %q", name), Hint: hint}
}

// put replaces the entry with the same name; the caller holds turn.
func (s *Scheduler) put(e entry) *entry {
	e.next = time.Time{}
	if e.state.PausedAt == 0 {
		e.next = e.def.Timing.Next(e.state.Last.Time())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[e.def.Name] = &e
	clear(s.watched)
	for _, other := range s.entries {
		if len(other.state.Waiting) > 0 {
			for _, id := range other.openIDs() {
				s.watched[id] = true
			}
		}
	}
	s.watching.Store(int64(len(s.watched)))
	return &e
}

// openIDs returns the ids of jobs that may be open.
func (e *entry) openIDs() []string {
	if len(e.state.Open) == 0 && e.state.LastJob != "" {
		return []string{e.state.LastJob} // from a time when overlaps were allowed
	}
	return e.state.Open
}
