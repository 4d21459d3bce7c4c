package queue_test

import (
	"context"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// wantModel is wantCode for the model.
func wantModel(t *rapid.T, err error, code jobhost.Code) {
	if got := jobhost.CodeOf(err); got != code {
		t.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

// held says whether commits are made without anybody being told.
func (m *model) held() bool { return m.store.holdCallbacks != nil }

func (m *model) pickJob(t *rapid.T) *modelJob {
	if len(m.jobs) == 0 {
		t.Skip("there is no job")
	}
	return m.jobs[rapid.SampledFrom(slices.Sorted(maps.Keys(m.jobs))).Draw(t, "job")]
}

// count returns the numbers of a job's tasks by status.
func (j *modelJob) count() (c record.StatusCounts) {
	for _, task := range j.tasks {
		c[task.status]++
	}
	return c
}

// cancel cancels a job, whose answer comes later while callbacks are held up.
func (m *model) cancel(t *rapid.T) {
	job := m.pickJob(t)
	var want jobhost.Code
	switch c := job.count(); {
	case m.store.failCommits:
		want = jobhost.CodeUnavailable
	case c[record.Open] == 0 && c[record.Cancelled] == 0:
		want = jobhost.CodeConflict
	}
	answer := make(chan error, 1)
	go func() {
		_, err := m.q.Cancel(context.Background(), job.spec.ID)
		answer <- err
	}()
	synctest.Wait()
	for _, task := range job.tasks {
		if want == "" && task.status == record.Open {
			m.cancelTask(task)
		}
	}
	told := func(t *rapid.T) {
		wantModel(t, <-answer, want)
		for _, task := range job.tasks {
			task.cancelling = false
		}
	}
	if m.held() {
		m.asked = append(m.asked, told)
		return
	}
	told(t)
}

func (m *model) cancelTask(task *modelTask) {
	if task.running && task.lease == nil {
		m.orphans[task.job.spec.Worker]++
		m.orphanKeys[task.job.spec.Worker+"/"+task.job.spec.ConcurrencyKey]++
	}
	for _, s := range m.slots {
		if s.task == task {
			s.task = nil
		}
	}
	task.status, task.running, task.lease, task.cancelling = record.Cancelled, false, nil, true
}

func (m *model) retry(t *rapid.T) {
	if m.held() {
		t.Skip("whether there is room is not known")
	}
	job := m.pickJob(t)
	c := job.count()
	n := int(c[record.Dead] + c[record.Cancelled])
	_, err := m.q.Retry(context.Background(), job.spec.ID)
	switch {
	case n > 0 && m.full(job.spec.Worker, n):
		wantModel(t, err, jobhost.CodeExhausted)
	case m.store.failCommits:
		wantModel(t, err, jobhost.CodeUnavailable)
	case n == 0:
		wantModel(t, err, jobhost.CodeConflict)
	case err != nil:
		t.Fatalf("retry: %v", err)
	default:
		for _, task := range job.tasks {
			if task.status >= record.Dead {
				task.status, task.attempt, task.readyAt, task.stored = record.Open, 0, now(), now()
			}
		}
	}
}

func (m *model) delete(t *rapid.T) {
	if m.held() {
		t.Skip("it would wait")
	}
	job := m.pickJob(t)
	err := m.q.Delete(context.Background(), job.spec.ID)
	switch {
	case m.store.failCommits:
		wantModel(t, err, jobhost.CodeUnavailable)
	case job.count()[record.Open] > 0:
		wantModel(t, err, jobhost.CodeConflict)
	case err != nil:
		t.Fatalf("delete: %v", err)
	default:
		delete(m.jobs, job.spec.ID)
	}
}

// mode pauses, drains or resumes a worker.
func (m *model) mode(t *rapid.T) {
	if m.held() {
		t.Skip("it would wait")
	}
	worker := rapid.SampledFrom([]string{"w", "x"}).Draw(t, "worker")
	m.setMode(t, worker, rapid.SampledFrom([]jobhost.WorkerMode{
		jobhost.WorkerRunning, jobhost.WorkerPaused, jobhost.WorkerDraining,
	}).Draw(t, "mode"))
}

func (m *model) setMode(t *rapid.T, worker string, mode jobhost.WorkerMode) {
	err := m.q.SetMode(context.Background(), worker, mode)
	if m.store.failCommits {
		wantModel(t, err, jobhost.CodeUnavailable)
		return
	}
	if err != nil {
		t.Fatalf("%s becomes %s: %v", worker, mode, err)
	}
	m.modes[worker] = mode
}

// wait lets time pass, stopping at each moment at which something is due.
func (m *model) wait(t *rapid.T) {
	m.pass(t, rapid.SampledFrom([]time.Duration{
		time.Millisecond, time.Second, 5 * time.Second, time.Minute, time.Hour,
	}).Draw(t, "time"))
}

func (m *model) pass(t *rapid.T, d time.Duration) {
	end := record.MillisOf(time.Now().Add(d))
	for now() < end {
		next := end
		for _, w := range m.cfg.Workers {
			for _, task := range m.tasks(w.Name, (*modelTask).waits) {
				if task.readyAt > now() {
					next = min(next, task.readyAt)
				}
			}
			for _, task := range m.tasks(w.Name, func(x *modelTask) bool { return x.cancelling }) {
				if task.readyAt > now() { // the queue doesn't know yet
					next = min(next, task.readyAt)
				}
			}
			for _, at := range m.paused[w.Name] {
				next = min(next, at)
			}
			if at := record.MillisOf(m.nextToken(w.Name)); at > now() {
				next = min(next, at)
			}
		}
		time.Sleep(time.Duration(next-now()) * time.Millisecond)
		m.check(t)
	}
}

// troubles are what can go wrong with a store.
var troubles = map[string]func(*troubledStore){
	"a read fails":    func(s *troubledStore) { s.failReads = 1 },
	"reads fail":      func(s *troubledStore) { s.failReads = -1 },
	"reads take long": func(s *troubledStore) { s.holdReads = make(chan struct{}) },
	"commits fail":    func(s *troubledStore) { s.failCommits = true },
	// Which task then can't be read could not be asked.
	"nobody is told yet": func(s *troubledStore) { s.holdCallbacks, s.failReads = make(chan struct{}), 0 },
}

// spoil makes the store slow, or fail.
func (m *model) spoil(t *rapid.T) {
	trouble := rapid.SampledFrom(slices.Sorted(maps.Keys(troubles))).Draw(t, "trouble")
	if m.store.holdReads != nil || m.held() {
		t.Skip("one that holds things up is enough")
	}
	m.store.trouble(troubles[trouble])
}

// mend ends some or all troubles.
func (m *model) mend(t *rapid.T) {
	s := m.store
	if s.holdReads != nil && !m.held() && rapid.Bool().Draw(t, "reads only") {
		close(s.holdReads)
		s.trouble(func(s *troubledStore) { s.holdReads = nil })
		m.adopt()
		return
	}
	s.trouble(func(s *troubledStore) { s.failReads, s.failCommits = 0, false })
	m.release()
	m.told(t)
}

// release ends what holds reads and callbacks up.
func (m *model) release() {
	m.loose = m.loose || m.held()
	m.store.trouble(func(s *troubledStore) {
		for _, hold := range []*chan struct{}{&s.holdReads, &s.holdCallbacks} {
			if *hold != nil {
				close(*hold)
				*hold = nil
			}
		}
	})
	m.adopt()
}

// adopt forgets the orphans: their slots go on.
func (m *model) adopt() {
	m.loose = m.loose || len(m.orphans) > 0
	clear(m.orphans)
	clear(m.orphanKeys)
}

// told takes the answers that were held up.
func (m *model) told(t *rapid.T) {
	synctest.Wait()
	m.collect(t)
	for _, told := range m.asked {
		told(t)
	}
	m.asked = nil
}

// reopen closes the queue and makes another one over what is stored.
func (m *model) reopen(t *rapid.T) {
	if m.store.holdReads != nil || m.held() {
		t.Skip("it would wait")
	}
	m.stop(t)
	for _, w := range m.cfg.Workers {
		for _, task := range m.tasks(w.Name, func(*modelTask) bool { return true }) {
			task.readyAt, task.running, task.lease = task.stored, false, nil
		}
	}
	clear(m.leased) // a lease ends with its process
	before := m.even
	m.start(t)
	for _, w := range m.cfg.Workers {
		m.resumed(t, w.Name, before[w.Name])
	}
}

func (m *model) stop(t *rapid.T) {
	if err := m.q.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.slots {
		if s.taking {
			if a := <-s.answer; jobhost.CodeOf(a.err) != jobhost.CodeUnavailable {
				t.Fatalf("a take from a closed queue: %v, %v", a.lease, a.err)
			}
		}
	}
}

// drain runs all that is left to its end. Nothing may stay behind.
func (m *model) drain(t *rapid.T) {
	m.store.trouble(func(s *troubledStore) { s.failReads, s.failCommits = 0, false })
	m.release()
	m.told(t)
	for _, w := range m.cfg.Workers {
		m.setMode(t, w.Name, jobhost.WorkerRunning)
	}
	m.check(t)
	for range 1000 {
		left := 0
		for _, s := range m.slots {
			if s.lease != nil {
				m.end(s, succeeded(""))
			} else if !s.taking {
				m.begin(s)
			}
		}
		m.check(t)
		for _, w := range m.cfg.Workers {
			left += len(m.tasks(w.Name, func(x *modelTask) bool { return x.status == record.Open }))
		}
		if left == 0 && !slices.ContainsFunc(m.slots, func(s *modelSlot) bool { return s.lease != nil }) {
			break
		}
		m.pass(t, 10*time.Second)
	}
	m.pass(t, 2*time.Hour)
	for _, w := range m.cfg.Workers {
		if n := m.q.Stats(w.Name).Counts(); n.Total() != 0 {
			t.Fatalf("%v tasks are left of worker %s", n, w.Name)
		}
	}
	if n := m.q.Resident(); n != 0 {
		t.Fatalf("%d bytes are held, but nothing waits", n)
	}
	m.stop(t)
	for _, s := range m.slots {
		s.taking = false
	}
}
