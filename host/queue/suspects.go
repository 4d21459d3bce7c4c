package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// suspects are the tasks that may have killed a leader, in a store that hosts share. The next leader is another machine and
// can't read files of the dead one, so what runs is noted in the store (suspects_note.go): once a second, and before each
// attempt that may have killed the leader before. A leader that stops in good order removes the note.
//
//	first death      a task whose attempt was noted becomes a suspect: its next attempt runs in a process of its own, and
//	                 the one that was cut short doesn't count
//	further deaths   if one suspect was running, its attempt counts as failed. If several were, none counts, and only a
//	                 quarter as many may run at a time from then on, until one runs alone
//
// A task is a suspect until an attempt of it is settled, which raises its token. If that was not the last one, the next runs
// as after a first death.
type suspects struct {
	q      *Queue
	deaths int        // of leaders, in a row
	opened time.Time  // when this term began
	newest record.Key // of the tasks that this term began with
	// wary = attempts have to pass admit before they begin: there are suspects, or unnoted is more than 0.
	wary atomic.Bool

	mu         sync.Mutex             // protects the rest
	tasks      map[record.Key]suspect // those that are suspects
	unnoted    int                    // how many more attempts of old tasks are noted before they begin
	running    map[record.Key]bool    // suspects of several deaths with an attempt under way
	maxRunning int                    // how many of these there may be; 0 = there are no suspects of several deaths

	note noteWriter
}

// suspect is a task with an attempt that was under way when a leader died.
type suspect struct {
	Key    record.Key `json:"key"`
	Token  int64      `json:"token"`
	Deaths int        `json:"deaths,omitempty"` // of leaders
}

const (
	// narrows divides the number of suspects that may run at a time after each death with several of them under way.
	narrows = 4
	// firstNoted is how many attempts of tasks from before the term are noted before they begin, after one death. A task
	// that kills its host within a second is in no note, but its turn comes about as early as the last time. Each further
	// death in a row makes it four times as many.
	firstNoted = 1000
	moreNoted  = 2  // as a shift
	mostShift  = 10 // a million times
	// aliveFor is how long a leader has to live for its death to start a new row.
	aliveFor = 10 * time.Minute
)

// newSuspects returns nil if the store is not shared. All methods work on nil.
func newSuspects(q *Queue) *suspects {
	if q.leased == nil {
		return nil
	}
	s := &suspects{q: q, opened: q.clock.now(), tasks: map[record.Key]suspect{}, running: map[record.Key]bool{}}
	s.note.suspects = s
	return s
}

// recall reads the note of the last leader, and returns the operations that write this one's first note.
func (s *suspects) recall(text string) []record.Op {
	if s == nil {
		return nil
	}
	if text != "" {
		s.judge(readNote(text))
	}
	s.note.written = s.note.text()
	return []record.Op{&record.Note{Name: noteRunning, Text: s.note.written}}
}

// judge decides about the attempts that were under way when the leader died.
func (s *suspects) judge(n runningNote) {
	again := 0
	for _, t := range n.Running {
		if t.Deaths > 0 {
			again++
		}
	}
	s.maxRunning = n.Most
	if again > 0 {
		s.maxRunning = max(again/narrows, 1)
	}
	failed := map[record.Key]*Crashed{}
	for _, t := range n.Running {
		t.Deaths++
		s.tasks[t.Key] = t
		if t.Deaths > 1 && again == 1 {
			failed[t.Key] = &Crashed{Key: t.Key, Token: t.Token, Began: s.opened, Failure: jobhost.Failure{
				Code: jobhost.FailHostCrash, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical, Retryable: true,
				Message: "hosts that led died while the attempt was under way, more than once",
			}}
		}
	}
	for _, t := range n.Waiting {
		s.tasks[t.Key] = t
	}
	s.deaths = n.Deaths + 1
	s.unnoted = firstNoted << min(moreNoted*(s.deaths-1), mostShift)
	s.wary.Store(true)
	for key, at := range failed {
		s.q.crashed.attempts[key] = at
	}
	s.q.cfg.Logger.Warn("the host that led before has died or lost the database; what it was running runs apart from the host, as far as that is known",
		"suspects", len(s.tasks), "failed", len(failed), "deaths", s.deaths)
}

// claimed is called for each task that this term begins with.
func (s *suspects) claimed(e order.Entry) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, e.Key)
	if t, ok := s.tasks[e.Key]; ok && t.Token != int64(e.Token) {
		delete(s.tasks, e.Key) // it was settled since
	}
}

// admit reports whether the attempt of a task may begin. If it has to be noted before, admit waits until that is durable.
func (s *suspects) admit(ctx context.Context, lease *Lease, body *record.Body) bool {
	if s == nil || !s.wary.Load() && !body.Suspect {
		return true
	}
	s.mu.Lock()
	t := s.tasks[body.Key]
	if t.Token != body.Token {
		t = suspect{}
	}
	if t.Deaths == 0 && body.Suspect { // an earlier attempt was under way at a death and counted
		t = suspect{body.Key, body.Token, 1}
		s.tasks[body.Key] = t
	}
	repeated := t.Deaths > 1
	if repeated && len(s.running) >= s.maxRunning {
		s.mu.Unlock()
		return false
	}
	old := s.unnoted > 0 && body.Key <= s.newest
	if old {
		s.unnoted--
	}
	if repeated {
		s.running[body.Key] = true
	}
	s.updateWaryLocked()
	s.mu.Unlock()
	lease.doubted = t.Deaths > 0
	body.Suspect = lease.doubted
	if !old && !lease.doubted {
		return true
	}
	if !s.note.awaitNoted(ctx) {
		s.leave(lease)
		return false
	}
	return true
}

// holds explains why a suspect waits for others: it returns at how many deaths it was under way, and how many such suspects
// may run at a time; 0 = it doesn't wait for them.
func (s *suspects) holds(key record.Key, token int64) (deaths, most int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[key]; t.Token == token && t.Deaths > 1 && !s.running[key] && len(s.running) >= s.maxRunning {
		return t.Deaths, s.maxRunning
	}
	return 0, 0
}

// leave is called when a lease ends without a settlement: the task waits again, for the same attempt.
func (s *suspects) leave(lease *Lease) {
	if s == nil || !s.wary.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, lease.entry.Key)
}

// settled is called when the settlement of an attempt is durable: its task is no suspect any more.
func (s *suspects) settled(lease *Lease) {
	if s == nil || !s.wary.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, lease.entry.Key)
	if s.tasks[lease.entry.Key].Token == int64(lease.entry.Token) {
		delete(s.tasks, lease.entry.Key)
	}
	s.updateWaryLocked()
}

func (s *suspects) updateWaryLocked() { s.wary.Store(len(s.tasks) > 0 || s.unnoted > 0) }

// begin starts noting what runs, and stop ends it.
func (s *suspects) begin() {
	if s != nil {
		s.note.begin()
	}
}

func (s *suspects) stop() {
	if s != nil {
		s.note.stop()
	}
}

// close removes the note: this host stops in good order.
func (s *suspects) close(ctx context.Context) {
	if s == nil || s.q.store.Err() != nil {
		return
	}
	if err := s.note.close(ctx); err != nil {
		s.q.cfg.Logger.Warn("the end of this host could not be noted; the next leader will take it for dead", logkey.Error, err)
	}
}
