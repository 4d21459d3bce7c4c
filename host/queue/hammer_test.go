package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// TestHammer lets producers, slots, people who change jobs and people who ask
// work on one queue, then lets it run empty. Every task must have ended once
// for each time it was opened, nothing may have begun after its end, and
// nothing may stay behind.
func TestHammer(t *testing.T) {
	t.Parallel()
	const producers, running = 4, 5
	each := 40
	if os.Getenv("JOBHOST_CHAOS") != "" {
		each = 2000
	}
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h := &hammer{t: t, tasks: map[string]bool{}, jobs: map[string]bool{}, leased: map[[2]int64]bool{}, beside: map[string]int{}, empty: make(chan struct{}), limit: running}
	retry := jobhost.RetryPolicy{MaxAttempts: 3, Backoff: jobhost.BackoffConstant, Initial: time.Millisecond, Max: time.Millisecond}
	breaker := jobhost.BreakerPolicy{Key: "k", Failures: 4, Timeout: 2 * time.Millisecond, Probes: 2, WhenOpen: jobhost.HoldWhenOpen}
	h.q, err = queue.New(t.Context(), store, queue.Config{
		Workers: []queue.Worker{
			{Name: "w", Capacity: 60, Retry: retry, Timeout: time.Minute, PerKey: 2, Breaker: breaker},
			{Name: "x", Capacity: 40, Retry: retry, Timeout: time.Minute, Rate: jobhost.Rate{Count: 5000, Per: time.Second}, Breaker: breaker},
		},
		MaxRunning: running, Aging: 5 * time.Millisecond, ResidentBytes: 8192, Publish: h.told,
	})
	if err != nil {
		t.Fatal(err)
	}
	var slots, people, work sync.WaitGroup
	for i := range 8 {
		slots.Go(func() { h.runTasks([]string{"w", "x"}[i%2]) })
	}
	for range 3 {
		people.Go(h.change)
		people.Go(h.ask)
	}
	for p := range producers {
		work.Go(func() { h.produce(p, each) })
	}
	work.Wait()
	h.over.Store(true)
	people.Wait()
	for _, worker := range []string{"w", "x"} {
		if err := h.q.SetMode(t.Context(), worker, jobhost.WorkerRunning); err != nil {
			t.Error(err)
		}
	}
	h.awaitEmpty()
	if err := h.q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	slots.Wait()
	h.checkNothingLeft()
}

type hammer struct {
	t     *testing.T
	q     *queue.Queue
	limit int64 // of tasks that run
	runs  atomic.Int64
	over  atomic.Bool // only what is there is run to its end

	mu     sync.Mutex // protects what follows
	ids    []string
	tasks  map[string]bool // whether it is open
	jobs   map[string]bool // whether it is open
	leased map[[2]int64]bool
	beside map[string]int // tasks that run, by job
	open   int            // jobs
	empty  chan struct{}  // closed when nothing is open after the end of the work
}

// told keeps book of what is open, by the events alone.
func (h *hammer) told(e jobhost.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	task := fmt.Sprint(e.Job, "/", e.Task)
	open, known := h.tasks[task]
	open = open || !known
	switch e.Kind {
	case jobhost.EventSubmitted:
		for i := range 3 { // the id may be that of a job which was deleted
			delete(h.tasks, fmt.Sprint(e.Job, "/", i))
		}
		h.openJobLocked(e.Job)
		return
	case jobhost.EventEnded:
		if !h.jobs[e.Job] {
			h.t.Errorf("job %s ended twice", e.Job)
		}
		h.jobs[e.Job] = false
		h.open--
		h.signalLocked()
		return
	case jobhost.EventSucceeded, jobhost.EventDead, jobhost.EventCancelled:
		h.tasks[task] = false
	case jobhost.EventRetrying:
		if e.State == jobhost.Ready { // a retry of what has ended
			h.tasks[task] = true
			h.openJobLocked(e.Job)
			open = !open
		}
	}
	if !open {
		h.t.Errorf("task %s: %s, but before that it was open: %t", task, e.Kind, h.tasks[task])
	}
}

func (h *hammer) openJobLocked(id string) {
	if !h.jobs[id] {
		h.jobs[id] = true
		h.open++
	}
}

func (h *hammer) signalLocked() {
	if h.over.Load() && h.open == 0 {
		select {
		case <-h.empty:
		default:
			close(h.empty)
		}
	}
}

func (h *hammer) awaitEmpty() {
	h.mu.Lock()
	h.signalLocked()
	h.mu.Unlock()
	select {
	case <-h.empty:
	case <-time.After(time.Minute):
		h.t.Errorf("%d jobs are still open", h.open)
	}
}

func (h *hammer) produce(p, each int) {
	for i := range each {
		specs := make([]jobhost.Spec, 1+rand.N(5))
		for k := range specs {
			n := i + rand.N(2)
			specs[k] = jobhost.Spec{
				ID: fmt.Sprintf("%d-%d", p, n), ConcurrencyKey: []string{"", "k", "l"}[n%3], Worker: []string{"w", "x"}[p%2], Tasks: 1 + p%3,
				Priority: jobhost.PriorityAt(p), Payload: make([]byte, 100),
			}
			if k > 0 {
				specs[k].ID, specs[k].Delay = "", rand.N(3*time.Millisecond)
				specs[k].Deadline = specs[k].Delay + 1 + rand.N(20*time.Millisecond)
			}
		}
		answers, err := h.q.SubmitBatch(h.t.Context(), specs)
		if err != nil {
			h.t.Error(err)
			return
		}
		for _, a := range answers {
			switch jobhost.CodeOf(a.Err) {
			case "":
				h.mu.Lock()
				h.ids = append(h.ids, a.Receipt.ID)
				h.mu.Unlock()
			case jobhost.CodeExhausted, jobhost.CodeNotFound, jobhost.CodeUnavailable: // full; deleted while it was looked for; draining
			default:
				h.t.Error(a.Err)
			}
		}
		h.produceStep(fmt.Sprintf("step.%d.%d", p, i), []string{"w", "x"}[p%2])
	}
}

// produceStep submits a job with the options that only jobs of steps have.
func (h *hammer) produceStep(id, worker string) {
	job := stepJob(id, 1+rand.N(5), func(j *record.JobSpec) {
		j.Worker, j.MaxParallel, j.Priority = worker, rand.N(3), jobhost.PriorityAt(rand.N(5))
		if rand.N(2) == 0 {
			j.Breaker = &jobhost.BreakerPolicy{
				Key: []string{"k", "l", "m"}[rand.N(3)], Failures: 2, Timeout: 2 * time.Millisecond, Probes: 1,
				WhenOpen: []jobhost.WhenOpen{jobhost.HoldWhenOpen, jobhost.HoldWhenOpen, jobhost.FailWhenOpen}[rand.N(3)],
			}
		}
	})
	for i := range job.Tasks {
		job.Items = append(job.Items, fmt.Appendf(nil, "%s/%d", id, i))
	}
	switch err := h.q.Add(h.t.Context(), job); jobhost.CodeOf(err) {
	case "":
		h.mu.Lock()
		h.ids = append(h.ids, id)
		h.mu.Unlock()
	case jobhost.CodeExhausted, jobhost.CodeUnavailable:
	default:
		h.t.Error(err)
	}
}

// runTasks takes and settles until the queue is closed.
func (h *hammer) runTasks(worker string) {
	slot := h.q.Slot(worker)
	for {
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Duration(1+rand.N(20))*time.Millisecond)
		lease, err := slot.Take(ctx)
		cancel()
		if err == context.DeadlineExceeded {
			continue
		}
		if err != nil {
			return
		}
		h.begin(lease)
		cancelled := make(chan struct{})
		lease.OnCancel(func() { close(cancelled) })
		outcome := h.outcome(cancelled)
		lease.OnCancel(nil)
		h.runs.Add(-1)
		h.mu.Lock()
		h.beside[lease.Job.ID]--
		h.mu.Unlock()
		h.q.Settle(lease, queue.Report{Outcome: outcome})
	}
}

func (h *hammer) begin(lease *queue.Lease) {
	if n := h.runs.Add(1); n > h.limit {
		h.t.Errorf("%d tasks run, of %d", n, h.limit)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := [2]int64{int64(lease.Key), lease.Token}
	if h.leased[id] {
		h.t.Errorf("task %d was leased twice with token %d", lease.Key, lease.Token)
	}
	h.leased[id] = true
	job := lease.Job
	if h.beside[job.ID]++; job.MaxParallel > 0 && h.beside[job.ID] > job.MaxParallel {
		h.t.Errorf("%d tasks of a job run, of %d", h.beside[job.ID], job.MaxParallel)
	}
	if want := fmt.Sprintf("%s/%d", job.ID, lease.Index); lease.Payload != nil && string(lease.Input()) != want {
		h.t.Errorf("task %s has %q", want, lease.Input())
	}
}

func (h *hammer) outcome(cancelled <-chan struct{}) jobhost.Outcome {
	select {
	case <-cancelled:
		return jobhost.Outcome{Kind: jobhost.OutcomeCancelled}
	default:
	}
	if h.over.Load() {
		return succeeded("")
	}
	return []jobhost.Outcome{
		succeeded("x"), succeeded(""), failed(true), failed(false),
		{Kind: jobhost.OutcomeReturned},
		{Kind: jobhost.OutcomeSnoozed, Snooze: time.Millisecond},
	}[rand.N(6)]
}

// some returns the id of a job that is there, or was.
func (h *hammer) some() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ids) == 0 {
		return "none"
	}
	return h.ids[max(len(h.ids)-1-rand.N(40), 0)]
}

func (h *hammer) change() {
	for !h.over.Load() {
		id := h.some()
		var err error
		switch rand.N(10) {
		case 9:
			err = h.q.ResetBreaker(h.t.Context(), "x")
		case 8:
			modes := []jobhost.WorkerMode{jobhost.WorkerRunning, jobhost.WorkerRunning, jobhost.WorkerPaused, jobhost.WorkerDraining}
			err = h.q.SetMode(h.t.Context(), []string{"w", "x"}[rand.N(2)], modes[rand.N(4)])
		case 0, 1, 2:
			_, err = h.q.Cancel(h.t.Context(), id)
		case 3, 4, 5, 6:
			_, err = h.q.Retry(h.t.Context(), id)
		default:
			err = h.q.Delete(h.t.Context(), id)
		}
		switch jobhost.CodeOf(err) {
		case "", jobhost.CodeConflict, jobhost.CodeNotFound, jobhost.CodeExhausted:
		default:
			h.t.Error(err)
		}
	}
}

func (h *hammer) ask() {
	for !h.over.Load() {
		if _, err := h.q.Why(h.t.Context(), h.some()); err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
			h.t.Error(err)
		}
		state := jobhost.States()[rand.N(len(jobhost.States()))]
		if _, err := h.q.Jobs(h.t.Context(), jobhost.Filter{State: state, Limit: 1 + rand.N(20)}); err != nil {
			h.t.Error(err)
		}
		for _, worker := range []string{"w", "x"} {
			stats := h.q.Stats(worker)
			for level := range stats.Ready {
				if stats.Ready[level] < 0 || stats.Held[level] < 0 || stats.Scheduled[level] < 0 || stats.Retrying[level] < 0 {
					h.t.Errorf("numbers of %s: %+v", worker, stats)
				}
			}
		}
	}
}

func (h *hammer) checkNothingLeft() {
	for task, open := range h.tasks {
		if open {
			h.t.Errorf("task %s is open at the end", task)
		}
	}
	for _, worker := range []string{"w", "x"} {
		stats := h.q.Stats(worker)
		if n := stats.Counts(); n.Total() != 0 || stats.Idle != 0 {
			h.t.Errorf("left of %s: %+v", worker, stats)
		}
		if n := h.q.Remains(worker) + h.q.Live(worker); n != 0 {
			h.t.Errorf("the lane of %s still knows of %d things", worker, n)
		}
	}
	if n := h.q.GateFree(); n != int(h.limit) {
		h.t.Errorf("%d of %d places are free at the end", n, h.limit)
	}
	if n := h.q.Resident(); n != 0 {
		h.t.Errorf("%d bytes are held at the end", n)
	}
	h.t.Logf("%d leases of %d tasks", len(h.leased), len(h.tasks))
}
