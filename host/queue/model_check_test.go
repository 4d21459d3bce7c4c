package queue_test

import (
	"context"
	"slices"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// check compares the queue with the model once everything has come to rest.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	candidates := map[string][]*modelTask{}
	for _, w := range m.cfg.Workers {
		candidates[w.Name] = m.tasks(w.Name, m.goes)
		m.paused[w.Name] = slices.DeleteFunc(m.paused[w.Name], func(at record.Millis) bool { return at <= now() })
	}
	chosen := m.collect(t)
	if m.held() {
		return // what was committed and what was told differ
	}
	for _, w := range m.cfg.Workers {
		chosen = append(chosen, m.observe(t, w.Name)...)
		m.checkOrder(t, candidates[w.Name], chosen)
		m.checkNumbers(t, w.Name)
	}
	m.checkGate(t)
	m.checkKeys(t)
	m.loose, m.failed = false, m.store.failed.Load()
	for _, job := range m.jobs {
		for _, task := range job.tasks {
			task.unsure = false
		}
	}
}

// collect takes what the slots were given, and returns the tasks of which the
// model did not know that they had been chosen.
func (m *model) collect(t *rapid.T) (chosen []*modelTask) {
	for _, s := range m.slots {
		select {
		case a := <-s.answer:
			if s.taking = false; a.err != nil {
				t.Fatalf("take: %v", a.err)
			}
			if task := m.deliver(t, s, a.lease); task != nil {
				chosen = append(chosen, task)
			}
		default:
		}
	}
	return chosen
}

// deliver notes a lease. It returns its task if that is news.
func (m *model) deliver(t *rapid.T, s *modelSlot, lease *queue.Lease) *modelTask {
	s.lease = lease
	id := [2]int64{int64(lease.Key), lease.Token}
	if m.leased[id] {
		t.Fatalf("task %d was leased twice with token %d", lease.Key, lease.Token)
	}
	m.leased[id] = true
	job := m.jobs[lease.Job.ID]
	if job == nil || lease.Index >= len(job.tasks) || job.tasks[lease.Index].key != lease.Key {
		t.Fatalf("leased task %d of %s, which is not there", lease.Key, lease.Job.ID)
	}
	task := job.tasks[lease.Index]
	switch {
	case task.cancelling:
		m.took(t, s.worker)
		return nil // the cancel was not answered yet, so this may be
	case task.status != record.Open || task.lease != nil || lease.Number() != task.attempt+1 || job.spec.Worker != s.worker:
		t.Fatalf("slot of %s got attempt %d of %+v", s.worker, lease.Number(), task)
	}
	news := !task.running
	if news && m.modes[s.worker] != jobhost.WorkerRunning && !m.loose {
		t.Fatalf("%+v was handed out, but %s is %s", task, s.worker, m.modes[s.worker])
	}
	if news {
		m.took(t, s.worker)
	}
	task.running, task.lease, s.task = true, lease, task
	if news {
		return task
	}
	return nil
}

// observe compares what is told of each task with what it should be. Which
// tasks are being read, and which could not be, is for the queue to say.
func (m *model) observe(t *rapid.T, worker string) (chosen []*modelTask) {
	all := m.tasks(worker, func(*modelTask) bool { return true })
	told := make([]jobhost.Task, len(all))
	for i, task := range all {
		job, err := m.q.Job(context.Background(), task.job.spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		told[i] = job.Tasks[task.index]
		if task.status == record.Open && task.lease == nil {
			chosen = append(chosen, m.observeWaiting(t, task, told[i])...)
		}
	}
	if m.loose { // a task that was cancelled meanwhile may have cost a token
		m.even[worker] = m.q.Even(worker)
	}
	for i, task := range all { // now that it is known what was chosen
		got, want, attempt := told[i], m.state(task), task.attempt
		if task.running {
			attempt++
		}
		if got.State != want || got.Attempt != attempt {
			t.Fatalf("task %d of %s is told to be %v at attempt %d, want %v at %d",
				task.index, task.job.spec.ID, got.State, got.Attempt, want, attempt)
		}
		if task.waits() && record.MillisOf(got.ReadyAt) != task.readyAt {
			t.Fatalf("task %d of %s is told to be ready at %v, want %v", task.index, task.job.spec.ID, got.ReadyAt, task.readyAt.Time())
		}
	}
	return chosen
}

// observeWaiting notes that a task was chosen, or put back since it could not
// be read.
func (m *model) observeWaiting(t *rapid.T, task *modelTask, got jobhost.Task) []*modelTask {
	worker := task.job.spec.Worker
	back := now() + 1000
	putBack := m.store.failed.Load() > m.failed && record.MillisOf(got.ReadyAt) == back && task.readyAt < back
	read := got.State == jobhost.Running
	switch {
	case putBack:
		before := *task
		task.running, task.readyAt = false, back
		m.paused[worker] = append(m.paused[worker], back)
		if before.running {
			return nil
		}
		m.took(t, worker)
		return []*modelTask{&before}
	case read && !task.running:
		if !task.ready() || m.store.holdReads == nil {
			t.Fatalf("%+v runs, but no slot has it", task)
		}
		task.running = true
		m.took(t, worker)
		return []*modelTask{task}
	case task.running && m.store.holdReads == nil:
		t.Fatalf("%+v was read, but no slot has it", task)
	}
	return nil
}

// state is what should be told of a task.
func (m *model) state(task *modelTask) jobhost.State {
	switch {
	case task.status != record.Open:
		return map[record.Status]jobhost.State{
			record.Succeeded: jobhost.Succeeded, record.Dead: jobhost.Dead, record.Cancelled: jobhost.Cancelled,
		}[task.status]
	case task.running:
		return jobhost.Running
	case m.goes(task):
		return jobhost.Ready
	case task.ready():
		return jobhost.Held
	case task.attempt > 0:
		return jobhost.Retrying
	}
	return jobhost.Scheduled
}

// checkOrder checks that no task was passed over.
func (m *model) checkOrder(t *rapid.T, candidates, chosen []*modelTask) {
	if m.loose {
		return
	}
	was := func(task *modelTask) bool {
		return slices.ContainsFunc(chosen, func(c *modelTask) bool { return c.key == task.key })
	}
	for _, over := range candidates {
		if over.unsure || was(over) || m.keyFull(over.job.spec.Worker, over.job.spec.ConcurrencyKey) {
			continue
		}
		for _, c := range chosen {
			if c.job.spec.Worker == over.job.spec.Worker && m.before(over, c) {
				t.Fatalf("%+v was chosen before %+v", c, over)
			}
		}
	}
}

// checkNumbers compares the numbers of a worker with a count of its tasks.
func (m *model) checkNumbers(t *rapid.T, worker string) {
	got := m.q.Stats(worker)
	want := queue.Stats{Idle: got.Idle, OldestReady: got.OldestReady}
	for _, task := range m.tasks(worker, func(x *modelTask) bool { return x.status == record.Open }) {
		*map[jobhost.State]*int{
			jobhost.Ready:     &want.Ready[task.job.spec.Priority.Level()],
			jobhost.Held:      &want.Held[task.job.spec.Priority.Level()],
			jobhost.Scheduled: &want.Scheduled[task.job.spec.Priority.Level()],
			jobhost.Retrying:  &want.Retrying[task.job.spec.Priority.Level()],
			jobhost.Running:   &want.Running[task.job.spec.Priority.Level()],
		}[m.state(task)]++
	}
	if got != want {
		t.Fatalf("the numbers of %s are %+v, want %+v", worker, got, want)
	}
	if n, waiting := m.q.Live(worker), len(m.tasks(worker, (*modelTask).waits)); n != waiting {
		t.Fatalf("the lane of %s holds %d entries that count, but %d tasks wait", worker, n, waiting)
	}
}

// checkGate checks that no more run than may, and that nothing waits that could run.
func (m *model) checkGate(t *rapid.T) {
	use := 0
	idle, reading := map[string]int{}, map[string]int{}
	for _, s := range m.slots {
		if s.lease != nil {
			use++
		}
		if s.taking {
			idle[s.worker]++
		}
	}
	for _, w := range m.cfg.Workers {
		read := func(x *modelTask) bool { return x.running && x.lease == nil }
		reading[w.Name] = len(m.tasks(w.Name, read)) + m.orphans[w.Name]
		use += reading[w.Name]
		idle[w.Name] -= reading[w.Name] + len(m.paused[w.Name])
		if got := m.q.Stats(w.Name).Idle; got != idle[w.Name] {
			t.Fatalf("%d slots of %s are idle, want %d: %d read, %v pause", got, w.Name, idle[w.Name], reading[w.Name], m.paused[w.Name])
		}
	}
	if m.cfg.MaxRunning > 0 && use > m.cfg.MaxRunning {
		t.Fatalf("%d tasks run, of %d", use, m.cfg.MaxRunning)
	}
	for _, w := range m.cfg.Workers {
		ready := len(m.tasks(w.Name, m.goes))
		if idle[w.Name] > 0 && ready > 0 && (m.cfg.MaxRunning == 0 || use < m.cfg.MaxRunning) {
			t.Fatalf("%d tasks of %s are ready and %d slots idle, while %d tasks run", ready, w.Name, idle[w.Name], use)
		}
	}
}

// list compares the lists of each state.
func (m *model) list(t *rapid.T) {
	if m.held() {
		t.Skip("what was committed and what was told differ")
	}
	worker := rapid.SampledFrom([]string{"", "w", "x"}).Draw(t, "worker")
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	for _, state := range jobhost.States() {
		var want, got []string
		var jobs []*modelJob
		for _, job := range m.jobs {
			in := func(x *modelTask) bool { return m.state(x) == state }
			if (worker == "" || worker == job.spec.Worker) && slices.ContainsFunc(job.tasks, in) {
				jobs = append(jobs, job)
			}
		}
		slices.SortFunc(jobs, func(a, b *modelJob) int { return int(b.tasks[0].key - a.tasks[0].key) })
		for _, job := range jobs {
			want = append(want, job.spec.ID)
		}
		filter := jobhost.Filter{Worker: worker, State: state, Limit: limit}
		for range 100 {
			page, err := m.q.Jobs(context.Background(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range page.Jobs {
				got = append(got, job.ID)
			}
			if filter.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("jobs of %q in state %v: %v, want %v", worker, state, got, want)
		}
	}
}
