package pgqueue

import (
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

var _ record.Roomy = (*Store)(nil)

// retryRefused is how long a settlement waits that the server did not take for want of room, or for another reason that may
// pass, before it is written again.
const retryRefused = 250 * time.Millisecond

// room keeps such settlements back: one that fails makes its task run again, and each time that it has run. While there
// are any, no task begins, so there are never more of them than tasks were running.
type room struct {
	mu      sync.Mutex // protects the rest
	err     error      // why settlements are kept back; nil = none is
	held    map[*batch]*time.Timer
	flowing chan struct{} // closed while none is kept back
	giveUp  bool
}

func newRoom() *room {
	r := &room{held: map[*batch]*time.Timer{}, flowing: make(chan struct{})}
	close(r.flowing)
	return r
}

// Full implements [record.Roomy].
func (s *Store) Full() error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.room.err
}

// Flowing implements [record.Roomy].
func (s *Store) Flowing() <-chan struct{} {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.room.flowing
}

// GiveUp implements [record.Roomy]. What is kept back is tried once more.
func (s *Store) GiveUp() {
	s.room.mu.Lock()
	s.room.giveUp = true
	var waiting []*batch
	for b, timer := range s.room.held {
		if timer.Stop() {
			waiting = append(waiting, b)
		}
	}
	s.room.mu.Unlock()
	for _, b := range waiting {
		s.writer.Write(b)
	}
}

// patient reports whether a batch may be kept back.
func (b *batch) patient() bool {
	for _, op := range b.ops {
		if settle, ok := op.(*record.Settle); !ok || !settle.Patient {
			return false
		}
	}
	return len(b.ops) > 0
}

// keep keeps a batch back that was not made, and reports whether it has.
func (s *Store) keep(b *batch, err error) bool {
	if !pgdb.IsShort(err) || !b.patient() {
		return false
	}
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.giveUp {
		return false
	}
	if r.err == nil {
		r.flowing = make(chan struct{})
		s.db.Logger().Error("the database takes no writes: what has ended waits until it does", logkey.Error, err)
	}
	r.err = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldDisk, Message: err.Error(),
		Hint: "has the database's disk room? jobs are taken again by themselves", RetryAfter: time.Second,
	}
	r.held[b] = time.AfterFunc(retryRefused, func() { s.writer.Write(b) })
	return true
}

// release notes that a batch is kept back no more, if it was.
func (s *Store) release(b *batch) {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.held[b]; !held {
		return
	}
	delete(r.held, b)
	if len(r.held) == 0 {
		r.err = nil
		close(r.flowing)
		s.db.Logger().Info("the database takes writes again, or the host stops: nothing waits any more")
	}
}
