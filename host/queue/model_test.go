package queue_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// TestModel does random things to a queue over a store that is slow and fails,
// and to a model that is a list of tasks, and compares all that can be asked
// after every step. JOBHOST_CHAOS=1 (make chaos) asks for many more checks.
func TestModel(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("JOBHOST_CHAOS") != "" {
		rounds = 40
	}
	for _, store := range modelStores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			for range rounds {
				rapid.Check(t, func(rt *rapid.T) {
					// What rapid throws must leave the bubble's goroutine to be caught.
					var thrown any
					synctest.Test(t, func(*testing.T) {
						defer func() { thrown = recover() }()
						runModel(rt, store.open)
					})
					if thrown != nil {
						panic(thrown)
					}
				})
			}
		})
	}
}

// modelStores are the stores that the queue is compared with the model on. Each gives keys from 1, shows the time
// of the bubble, and is closed by the model.
var modelStores = []struct {
	name string
	open func() (record.Store, error)
}{
	{"memory", func() (record.Store, error) { return queuetest.NewMemory(), nil }},
	{"sqlite", func() (record.Store, error) { return sqlitequeue.Open(sqlitequeue.Options{}) }},
}

func runModel(t *rapid.T, open func() (record.Store, error)) {
	m := newModel(t, open)
	defer m.close()
	t.Repeat(map[string]func(*rapid.T){
		"submit": m.submit,
		"take":   m.take,
		"cease":  m.cease,
		"settle": m.settle,
		"finish": m.settle, // as often as tasks are taken
		"cancel": m.cancel,
		"retry":  m.retry,
		"delete": m.delete,
		"list":   m.list,
		"wait":   m.wait,
		"mode":   m.mode,
		"spoil":  m.spoil,
		"mend":   m.mend,
		"reopen": m.reopen,
		"":       m.check,
	})
	m.drain(t)
}

type model struct {
	store *troubledStore
	cfg   queue.Config
	q     *queue.Queue
	jobs  map[string]*modelJob
	next  record.Key // what the store gives the next job
	slots []*modelSlot
	// paused holds when slots go on that met a failing read, by worker.
	paused map[string][]record.Millis
	// orphans are the slots that still read a task that was cancelled, by worker.
	orphans map[string]int
	// leased holds the leases that there ever were: no key and token comes twice.
	leased map[[2]int64]bool
	// asked are cancels that were made but not answered.
	asked []func(*rapid.T)
	// loose is true when a step was too coarse to say in which order tasks
	// became ready.
	loose  bool
	failed int64 // reads that had failed before this step
	modes  map[string]jobhost.WorkerMode
	keyed  bool // there was a job with a key
	// orphanKeys are the orphans by worker/key.
	orphanKeys map[string]int
	even       map[string]time.Time // of the workers' rates: see rate.go
	named      int                  // jobs that got a name of their own
}

type modelJob struct {
	spec  jobhost.Spec
	tasks []*modelTask
}

// modelTask is all that there is to know of a task.
type modelTask struct {
	job     *modelJob
	index   int
	key     record.Key
	status  record.Status
	attempt int
	// readyAt is when it may run; stored is what the store knows of that,
	// which is earlier for one that was put back.
	readyAt, stored record.Millis
	running         bool         // under the current lease
	lease           *queue.Lease // what a slot was given; nil while it is read
	unsure          bool         // became ready during this step, it may have been before or after a choice
	cancelling      bool         // cancelled, but not reported yet
}

type modelSlot struct {
	worker string
	slot   *queue.Slot
	taking bool
	cease  context.CancelCauseFunc
	answer chan taken
	lease  *queue.Lease
	task   *modelTask // nil = the lease is no longer the task's
}

type taken struct {
	lease *queue.Lease
	err   error
}

func newModel(t *rapid.T, open func() (record.Store, error)) *model {
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	retry := jobhost.DefaultRetry()
	retry.Jitter = 0
	m := &model{
		store:  &troubledStore{Store: store},
		jobs:   map[string]*modelJob{},
		next:   1,
		leased: map[[2]int64]bool{},
		modes:  map[string]jobhost.WorkerMode{"w": jobhost.WorkerRunning, "x": jobhost.WorkerRunning},
		cfg: queue.Config{
			Workers: []queue.Worker{
				{
					Name: "w", Capacity: 6, Retry: retry, Timeout: time.Minute,
					PerKey: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "per key"),
				},
				{
					Name: "x", Capacity: 4, Retry: retry, Timeout: time.Minute, PerKey: 1,
					Rate: rapid.SampledFrom([]jobhost.Rate{{}, {Count: 1, Per: 2 * time.Second}}).Draw(t, "rate"), RateBurst: 2,
				},
			},
			MaxRunning:    rapid.SampledFrom([]int{2, 0, 3}).Draw(t, "max running"),
			Aging:         rapid.SampledFrom([]time.Duration{0, 2 * time.Second, -1}).Draw(t, "aging"),
			ResidentBytes: rapid.SampledFrom([]int64{0, 1}).Draw(t, "resident bytes"),
		},
	}
	m.start(t)
	return m
}

func (m *model) close() {
	m.release()
	m.q.Stop()
	_ = m.store.Close()
}

func (m *model) start(t *rapid.T) {
	q, err := queue.New(context.Background(), m.store, m.cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.q, m.slots = q, nil
	m.paused, m.orphans = map[string][]record.Millis{}, map[string]int{}
	m.orphanKeys, m.even = map[string]int{}, map[string]time.Time{}
	for range 3 {
		for _, w := range m.cfg.Workers {
			m.slots = append(m.slots, &modelSlot{worker: w.Name, slot: q.Slot(w.Name), answer: make(chan taken, 1)})
		}
	}
}

func now() record.Millis { return record.MillisOf(time.Now()) }

// tasks returns the tasks of a worker for which the condition holds.
func (m *model) tasks(worker string, is func(*modelTask) bool) []*modelTask {
	var out []*modelTask
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		for _, task := range m.jobs[id].tasks {
			if task.job.spec.Worker == worker && is(task) {
				out = append(out, task)
			}
		}
	}
	return out
}

func (x *modelTask) waits() bool { return x.status == record.Open && !x.running }
func (x *modelTask) ready() bool { return x.waits() && x.readyAt <= now() }

// full says whether a worker's queue has no room for n more tasks.
func (m *model) full(worker string, n int) bool {
	capacity := m.cfg.Workers[slices.IndexFunc(m.cfg.Workers, func(w queue.Worker) bool { return w.Name == worker })].Capacity
	return len(m.tasks(worker, (*modelTask).waits))+n > capacity
}

func (m *model) submit(t *rapid.T) {
	if m.held() {
		t.Skip("whether there is room is not known")
	}
	spec := jobhost.Spec{
		ID:       rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "id"),
		Worker:   rapid.SampledFrom([]string{"w", "x"}).Draw(t, "worker"),
		Priority: jobhost.PriorityAt(rapid.IntRange(0, 4).Draw(t, "level")),
		Tasks:    rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "tasks"),
		Delay:    rapid.SampledFrom([]time.Duration{0, time.Millisecond, 2 * time.Second, time.Hour}).Draw(t, "delay"),
	}
	if m.cfg.ResidentBytes == 0 { // the other half is without keys
		spec.ConcurrencyKey = rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key")
	}
	if spec.ID == "" {
		m.named++
		spec.ID = fmt.Sprint("own-", m.named)
	}
	there := m.jobs[spec.ID]
	if there != nil && rapid.Bool().Draw(t, "again") {
		spec = there.spec
	}
	same := there != nil && fmt.Sprint(there.spec) == fmt.Sprint(spec)
	full, drains := m.full(spec.Worker, spec.Tasks), m.modes[spec.Worker] == jobhost.WorkerDraining
	receipt, err := m.q.Submit(context.Background(), spec)
	switch {
	case drains && there == nil:
		wantModel(t, err, jobhost.CodeUnavailable)
	case full && there == nil:
		wantModel(t, err, jobhost.CodeExhausted)
	case !full && !drains && m.store.failCommits:
		wantModel(t, err, jobhost.CodeUnavailable)
	case there != nil && !same:
		wantModel(t, err, jobhost.CodeConflict)
	case err != nil || receipt.ID != spec.ID || receipt.Deduplicated != same:
		t.Fatalf("submit %+v: %+v, %v; there before: %t, full: %t", spec, receipt, err, same, full)
	case !same:
		m.add(spec)
	}
}

func (m *model) add(spec jobhost.Spec) {
	job := &modelJob{spec: spec}
	m.keyed = m.keyed || spec.ConcurrencyKey != ""
	at := record.MillisOf(time.Now().Add(spec.Delay))
	for i := range spec.Tasks {
		job.tasks = append(job.tasks, &modelTask{job: job, index: i, key: m.next, readyAt: at, stored: at})
		m.next++
	}
	m.jobs[spec.ID] = job
}

// pick draws a slot for which the condition holds.
func (m *model) pick(t *rapid.T, is func(*modelSlot) bool) *modelSlot {
	var some []int
	for i, s := range m.slots {
		if is(s) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		t.Skip("there is no such slot")
	}
	return m.slots[rapid.SampledFrom(some).Draw(t, "slot")]
}

func (m *model) take(t *rapid.T) {
	m.begin(m.pick(t, func(s *modelSlot) bool { return !s.taking && s.lease == nil }))
}

func (m *model) begin(s *modelSlot) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.taking, s.cease = true, cancel
	go func() {
		lease, err := s.slot.Take(ctx)
		s.answer <- taken{lease, err}
	}()
}

// cease ends a take's context.
func (m *model) cease(t *rapid.T) {
	s := m.pick(t, func(s *modelSlot) bool {
		return s.taking && m.store.holdReads == nil && len(m.paused[s.worker]) == 0
	})
	s.cease(errCeased)
	synctest.Wait()
	if a := <-s.answer; a.err != errCeased {
		t.Fatalf("a take whose context has ended: %v, %v", a.lease, a.err)
	}
	s.taking = false
}

var errCeased = fmt.Errorf("no longer wanted")

func (m *model) settle(t *rapid.T) {
	s := m.pick(t, func(s *modelSlot) bool { return s.lease != nil })
	outcomes := []jobhost.Outcome{
		succeeded("x"), failed(true), failed(false),
		{Kind: jobhost.OutcomeReturned},
		{Kind: jobhost.OutcomeSnoozed, Snooze: time.Millisecond},
		{Kind: jobhost.OutcomeSnoozed, Snooze: time.Minute},
	}
	if s.task == nil && !m.held() {
		outcomes = append(outcomes, jobhost.Outcome{Kind: jobhost.OutcomeCancelled})
	}
	m.end(s, outcomes[rapid.IntRange(0, len(outcomes)-1).Draw(t, "outcome")])
}

// end settles what a slot has with an outcome.
func (m *model) end(s *modelSlot, outcome jobhost.Outcome) {
	lease, task := s.lease, s.task
	s.lease, s.task = nil, nil
	m.q.Settle(lease, queue.Report{Outcome: outcome})
	if task == nil {
		m.loose = m.loose || lease.Job.ConcurrencyKey != "" // whose turn comes now
		return                                              // refused, whatever it is
	}
	task.running, task.lease, task.unsure = false, nil, true
	m.unsureKey(task)
	if m.store.failCommits {
		task.readyAt = now() + 1000
		delete(m.leased, [2]int64{int64(lease.Key), lease.Token}) // it is still the current one
		return
	}
	switch outcome.Kind {
	case jobhost.OutcomeSucceeded:
		task.attempt++
		task.status = record.Succeeded
	case jobhost.OutcomeFailed:
		task.attempt++
		if task.readyAt = now() + 1000<<(task.attempt-1); !outcome.Failure.Retryable || task.attempt == 3 {
			task.status = record.Dead
		}
	case jobhost.OutcomeSnoozed:
		task.readyAt = record.MillisOf(time.Now().Add(outcome.Snooze))
	}
	task.stored = task.readyAt
}
