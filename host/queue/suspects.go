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

// suspects are the tasks that may have ended a host that led, in a store that hosts share. The host that leads next is
// another machine, so it can't read what the dead one has noted in its own folder. What runs is noted in the store
// instead (watch.go): once a second, and before each attempt that may have ended the leader before. The note is removed
// by a leader that stops in good order.
//
//	first death      an attempt that was noted makes its task a suspect: the next one runs apart, and nothing counts
//	further deaths   it counts for the one suspect that was under way. If there were several, a quarter of them run at
//	                 one time from then on, until one is alone
//
// A suspect is one until its attempt is settled, which raises the token of its task. If it runs again after that, it is
// as after its first death.
type suspects struct {
	q      *Queue
	deaths int       // of leaders, in a row
	opened time.Time // when this term began
	newest record.Key
	// wary says that attempts are looked at before they begin: there are suspects, or unnoted is more than 0.
	wary atomic.Bool

	mu      sync.Mutex             // protects the rest
	doubts  map[record.Key]suspect // by task
	unnoted int                    // attempts of old tasks that are to be noted before they begin
	crowd   map[record.Key]bool    // those of several deaths with an attempt under way
	most    int                    // how many of these there may be; 0 = that does not matter yet

	watch watch
}

// suspect is a task of which an attempt was under way when leaders died.
type suspect struct {
	Key    record.Key `json:"key"`
	Token  int64      `json:"token"`
	Deaths int        `json:"deaths,omitempty"` // so many of them
}

const (
	// narrows is by how much fewer suspects run at one time after a death that had several of them under way.
	narrows = 4
	// firstNoted is how many attempts of tasks from before the term are noted before they begin, after a death. One that
	// ends hosts within a second is in no note at first, and comes to its turn again about when it did before. After each
	// further death in a row there are four times as many.
	firstNoted = 1000
	moreNoted  = 2  // as a shift
	mostShift  = 10 // a million times
	// aliveFor is how long a leader has to live for its death to be the first in a row.
	aliveFor = 10 * time.Minute
)

// newSuspects returns nil if no other host can lead.
func newSuspects(q *Queue) *suspects {
	if q.leased == nil {
		return nil
	}
	s := &suspects{q: q, opened: q.clock.now(), doubts: map[record.Key]suspect{}, crowd: map[record.Key]bool{}}
	s.watch.suspects = s
	return s
}

// recall takes in the note of the leader before, and returns what is to be noted as this one begins.
func (s *suspects) recall(text string) []record.Op {
	if s == nil {
		return nil
	}
	if text != "" {
		s.judge(readNote(text))
	}
	s.watch.written = s.watch.text()
	return []record.Op{&record.Note{Name: noteRunning, Text: s.watch.written}}
}

// judge decides about what was under way when the leader died.
func (s *suspects) judge(n note) {
	again := 0
	for _, t := range n.Running {
		if t.Deaths > 0 {
			again++
		}
	}
	s.most = n.Most
	if again > 0 {
		s.most = max(again/narrows, 1)
	}
	failed := map[record.Key]*Crashed{}
	for _, t := range n.Running {
		t.Deaths++
		s.doubts[t.Key] = t
		if t.Deaths > 1 && again == 1 {
			failed[t.Key] = &Crashed{Key: t.Key, Token: t.Token, Began: s.opened, Failure: jobhost.Failure{
				Code: jobhost.FailHostCrash, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical, Retryable: true,
				Message: "hosts that led died while the attempt was under way, more than once",
			}}
		}
	}
	for _, t := range n.Waiting {
		s.doubts[t.Key] = t
	}
	s.deaths = n.Deaths + 1
	s.unnoted = firstNoted << min(moreNoted*(s.deaths-1), mostShift)
	s.wary.Store(true)
	for key, at := range failed {
		s.q.crashed.attempts[key] = at
	}
	s.q.cfg.Logger.Warn("the host that led before has died or lost the database; what it was running runs apart from the host, as far as that is known",
		"suspects", len(s.doubts), "failed", len(failed), "deaths", s.deaths)
}

// claimed takes in a task that this term begins with.
func (s *suspects) claimed(e order.Entry) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, e.Key)
	if t, ok := s.doubts[e.Key]; ok && t.Token != int64(e.Token) {
		delete(s.doubts, e.Key) // it was settled since
	}
}

// admit reports whether the attempt of a task may begin, when what has to be noted of it is durable.
func (s *suspects) admit(ctx context.Context, lease *Lease, body *record.Body) bool {
	if s == nil || !s.wary.Load() && !body.Suspect {
		return true
	}
	s.mu.Lock()
	t := s.doubts[body.Key]
	if t.Token != body.Token {
		t = suspect{}
	}
	if t.Deaths == 0 && body.Suspect { // an earlier attempt was under way at a death, and counts
		t = suspect{body.Key, body.Token, 1}
		s.doubts[body.Key] = t
	}
	crowded := t.Deaths > 1
	if crowded && len(s.crowd) >= s.most {
		s.mu.Unlock()
		return false
	}
	old := s.unnoted > 0 && body.Key <= s.newest
	if old {
		s.unnoted--
	}
	if crowded {
		s.crowd[body.Key] = true
	}
	s.calmLocked()
	s.mu.Unlock()
	lease.doubted = t.Deaths > 0
	body.Suspect = lease.doubted
	if !old && !lease.doubted {
		return true
	}
	if !s.watch.noted(ctx) {
		s.leave(lease)
		return false
	}
	return true
}

// holds returns at how many deaths an attempt of a task was under way, if it has to wait for other suspects, and how many of
// these may run at one time; 0 = it doesn't have to.
func (s *suspects) holds(key record.Key, token int64) (deaths, most int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.doubts[key]; t.Token == token && t.Deaths > 1 && !s.crowd[key] && len(s.crowd) >= s.most {
		return t.Deaths, s.most
	}
	return 0, 0
}

// leave is for a lease that ends although its task waits for the same attempt.
func (s *suspects) leave(lease *Lease) {
	if s == nil || !s.wary.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.crowd, lease.entry.Key)
}

// settled forgets a suspect: what became of its attempt is durable.
func (s *suspects) settled(lease *Lease) {
	if s == nil || !s.wary.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.crowd, lease.entry.Key)
	if s.doubts[lease.entry.Key].Token == int64(lease.entry.Token) {
		delete(s.doubts, lease.entry.Key)
	}
	s.calmLocked()
}

func (s *suspects) calmLocked() { s.wary.Store(len(s.doubts) > 0 || s.unnoted > 0) }

// begin begins to watch what runs, and stop ends that.
func (s *suspects) begin() {
	if s != nil {
		s.watch.begin()
	}
}

func (s *suspects) stop() {
	if s != nil {
		s.watch.stop()
	}
}

// close removes the note: this host stops in good order.
func (s *suspects) close(ctx context.Context) {
	if s == nil || s.q.store.Err() != nil {
		return
	}
	if err := s.watch.close(ctx); err != nil {
		s.q.cfg.Logger.Warn("the end of this host is not noted; the next one that leads takes it for dead", logkey.Error, err)
	}
}
