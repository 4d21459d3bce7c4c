package queue_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// worker returns the settings of a worker.
func (m *model) worker(name string) *queue.Worker {
	return &m.cfg.Workers[slices.IndexFunc(m.cfg.Workers, func(w queue.Worker) bool { return w.Name == name })]
}

// goes says whether a task may be taken.
func (m *model) goes(x *modelTask) bool {
	return x.ready() && m.open(x.job.spec.Worker) && !m.keyFull(x.job.spec.Worker, x.job.spec.ConcurrencyKey)
}

// open says whether nothing holds the tasks of a worker.
func (m *model) open(worker string) bool {
	return m.modes[worker] == jobhost.WorkerRunning && !time.Now().Before(m.nextToken(worker))
}

// keyFull says whether the tasks of a key must wait for one of them to end.
func (m *model) keyFull(worker, key string) bool {
	limit := m.worker(worker).PerKey
	return key != "" && limit > 0 && m.keyUse(worker, key) >= limit
}

// keyUse counts the tasks of a key that run, cancelled attempts included.
func (m *model) keyUse(worker, key string) int {
	n := m.orphanKeys[worker+"/"+key]
	for _, s := range m.slots {
		if s.lease != nil && s.worker == worker && s.lease.Job.ConcurrencyKey == key {
			n++
		}
	}
	read := func(x *modelTask) bool { return x.running && x.lease == nil && x.job.spec.ConcurrencyKey == key }
	return n + len(m.tasks(worker, read))
}

// nextToken is when a worker's rate lets the next task begin.
func (m *model) nextToken(worker string) time.Time {
	w := m.worker(worker)
	if w.Rate.Count == 0 {
		return time.Time{}
	}
	return m.even[worker].Add(-w.Rate.Every() * time.Duration(w.RateBurst-1))
}

// took notes that a task was chosen now.
func (m *model) took(t *rapid.T, worker string) {
	w := m.worker(worker)
	if w.Rate.Count == 0 {
		return
	}
	if !m.loose && !m.held() && time.Now().Before(m.nextToken(worker)) {
		t.Fatalf("a task of %s was chosen before its time, %v", worker, m.nextToken(worker))
	}
	even := m.even[worker]
	if even.Before(time.Now()) {
		even = time.Now()
	}
	m.even[worker] = even.Add(w.Rate.Every())
}

// resumed looks at where a worker's rate stands in a new queue: where it stood in the one before, unless that could
// not be noted.
func (m *model) resumed(t *rapid.T, worker string, before time.Time) {
	m.even[worker] = m.q.Even(worker)
	switch gains := m.even[worker].Sub(before); {
	case !before.After(time.Now()): // a burst may begin
	case gains < 0:
		t.Fatalf("the rate of %s stands at %v, and stood at %v", worker, m.even[worker], before)
	case gains > time.Millisecond && !m.store.failCommits:
		t.Fatalf("the rate of %s has lost %v", worker, gains)
	}
}

// unsureKey marks the tasks of a key, of which it is not known when in this
// step they could be chosen.
func (m *model) unsureKey(x *modelTask) {
	same := func(o *modelTask) bool {
		return o.job.spec.ConcurrencyKey != "" && o.job.spec.ConcurrencyKey == x.job.spec.ConcurrencyKey
	}
	for _, o := range m.tasks(x.job.spec.Worker, same) {
		o.unsure = true
	}
}

// before says whether a task must be taken before another one that is ready
// too. Keys take turns, so that age decides among those of one key and level;
// without keys it always does.
func (m *model) before(a, b *modelTask) bool {
	effective := func(x *modelTask) jobhost.Priority {
		aging := m.cfg.Aging
		if aging == 0 {
			aging = time.Minute
		}
		return x.job.spec.Priority.Effective(time.Duration(now()-x.readyAt)*time.Millisecond, aging)
	}
	if ea, eb := effective(a), effective(b); ea != eb {
		return ea < eb
	}
	sa, sb := &a.job.spec, &b.job.spec
	if m.keyed && (sa.ConcurrencyKey != sb.ConcurrencyKey || sa.Priority != sb.Priority) {
		return false
	}
	if a.readyAt != b.readyAt {
		return a.readyAt < b.readyAt
	}
	return a.key < b.key
}

// checkKeys checks that no more tasks of a key run than may.
func (m *model) checkKeys(t *rapid.T) {
	for _, w := range m.cfg.Workers {
		for _, key := range []string{"k", "l"} {
			if n := m.keyUse(w.Name, key); w.PerKey > 0 && n > w.PerKey {
				t.Fatalf("%d tasks of %s with key %s run, of %d", n, w.Name, key, w.PerKey)
			}
		}
	}
}
