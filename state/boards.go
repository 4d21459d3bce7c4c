package state

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
)

// Boards opens the board of each job once, for all who use it at the same time,
// and keeps unused ones in memory for a while; how long is for a [Costly]
// store to say. It is safe for many goroutines.
type Boards struct {
	store    Store
	observe  Observer
	idleTime time.Duration // how long a board is kept; 0 = until there are too many

	count  atomic.Int64 // of open, for those who look often
	mu     sync.Mutex   // protects the fields below
	open   map[Job]*shared
	idle   list.List // of unused boards, the last used first
	bytes  int       // of the idle ones
	closed bool
}

// Bounds of the boards that are kept without being used.
const (
	maxIdle      = 1024
	maxIdleBytes = 64 << 20
)

// shared is a board with its users.
type shared struct {
	job   Job
	ready chan struct{} // closed when board or err is set
	board *Board
	err   error
	own   bool  // err is the opener's alone: others may have more luck
	doom  error // of End, before there is a board; nil = none
	users int
	size  int           // as it counts while it is idle
	idle  *list.Element // nil while it is used
	timer *time.Timer   // closes it when it was idle for too long; nil without idleTime
}

// NewBoards returns boards of a store, which the caller closes after them.
func NewBoards(store Store, observe Observer) *Boards {
	b := &Boards{store: store, observe: observe, open: map[Job]*shared{}}
	if costly, ok := store.(Costly); ok {
		b.idleTime = costly.IdleTime()
	}
	return b
}

// Acquire returns the board of a job, and a function to call once when it is no
// longer used. Errors are those of [NewBoard].
func (b *Boards) Acquire(ctx context.Context, job Job, tasks int) (*Board, func(), error) {
	// Here too, so that the answer doesn't depend on what is in memory.
	if err := checkTasks(tasks); err != nil {
		return nil, nil, err
	}
	for {
		s, first, err := b.join(job)
		if err != nil {
			return nil, nil, err
		}
		if first {
			s.board, s.err = NewBoard(ctx, b.store, job, tasks, b.observe)
			s.own = ctx.Err() != nil || tasks == 0 && jobhost.CodeOf(s.err) == jobhost.CodeNotFound
			b.opened(s)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			b.leave(s)
			return nil, nil, context.Cause(ctx)
		}
		if s.err == nil && s.board.Err() == nil {
			return s.board, sync.OnceFunc(func() { b.leave(s) }), nil
		}
		b.leave(s)
		if s.err != nil && (first || !s.own) {
			return nil, nil, s.err
		}
		// It ended, or another gave up, or did not want to make the job: anew.
	}
}

// opened hands a board to all who wait for it.
func (b *Boards) opened(s *shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.err == nil && s.doom != nil {
		s.board.End(s.doom)
	}
	close(s.ready)
}

// Jobs returns the jobs whose boards are open, in no order.
func (b *Boards) Jobs() []Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.open))
}

// End ends the boards of the jobs that match, used ones and those that are being opened
// too. Who acquires such a job next opens it anew.
func (b *Boards) End(match func(Job) bool, reason error) {
	b.mu.Lock()
	var unused []*shared
	for job, s := range b.open {
		if !match(job) {
			continue
		}
		select {
		case <-s.ready:
			if s.err == nil {
				s.board.End(reason)
			}
		default:
			s.doom = reason
		}
		if b.takeLocked(s) {
			unused = append(unused, s)
		}
	}
	b.mu.Unlock()
	for _, s := range unused {
		_ = s.board.Close()
	}
}

// takeLocked takes a board off the list, and reports whether it was unused.
func (b *Boards) takeLocked(s *shared) (unused bool) {
	b.forgetLocked(s.job)
	if s.idle == nil {
		return false
	}
	b.wakeLocked(s)
	return true
}

// wakeLocked takes a board off those that are idle.
func (b *Boards) wakeLocked(s *shared) {
	b.idle.Remove(s.idle)
	s.idle, b.bytes = nil, b.bytes-s.size
	if s.timer != nil {
		s.timer.Stop()
	}
}

// restLocked puts a board among those that are idle.
func (b *Boards) restLocked(s *shared) {
	b.bytes += s.size
	rest := b.idle.PushFront(s)
	s.idle = rest
	if b.idleTime > 0 {
		s.timer = time.AfterFunc(b.idleTime, func() { b.expire(s, rest) })
	}
}

// expire closes a board that has been idle for long, unless it was used in between.
func (b *Boards) expire(s *shared, rest *list.Element) {
	b.mu.Lock()
	over := s.idle == rest && b.takeLocked(s)
	b.mu.Unlock()
	if over {
		_ = s.board.Close()
	}
}

// InUse reports whether anybody uses the board of a job.
func (b *Boards) InUse(job Job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.open[job]
	return s != nil && s.users > 0
}

// join returns the shared board of a job; first = the caller has to open it.
func (b *Boards) join(job Job) (_ *shared, first bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, ErrClosed
	}
	s := b.open[job]
	if s != nil && s.idle != nil {
		b.wakeLocked(s)
	}
	if first = s == nil; first {
		s = &shared{job: job, ready: make(chan struct{})}
		b.open[job] = s
		b.count.Store(int64(len(b.open)))
	}
	s.users++
	if b.observe.Opened != nil {
		b.observe.Opened(!first)
	}
	return s, first, nil
}

// leave gives a use up. What has ended or failed is forgotten at once.
func (b *Boards) leave(s *shared) {
	b.mu.Lock()
	s.users--
	var over []*shared
	select {
	case <-s.ready:
		over = b.settleLocked(s)
	default: // it is still being opened, by another
	}
	b.mu.Unlock()
	for _, s := range over {
		_ = s.board.Close()
	}
}

// settleLocked finds a place for a board that was left, and returns those to close.
func (b *Boards) settleLocked(s *shared) (over []*shared) {
	bad, listed := s.err != nil || s.board.Err() != nil, b.open[s.job] == s
	if bad && listed {
		b.forgetLocked(s.job)
	}
	switch {
	case s.users > 0:
		return nil
	case s.err != nil:
		return nil
	case bad || !listed || b.closed: // it would not be found again
		return []*shared{s}
	}
	states, bytes := s.board.Size()
	s.size = bytes + states*stateBytes
	if s.size > maxIdleBytes { // all others would have to go for it
		b.forgetLocked(s.job)
		return []*shared{s}
	}
	b.restLocked(s)
	for b.idle.Len() > maxIdle || b.bytes > maxIdleBytes {
		last := b.idle.Back().Value.(*shared)
		b.takeLocked(last)
		over = append(over, last)
	}
	return over
}

// stateBytes is about what a state takes besides its texts.
const stateBytes = 400

// Forget has the board of a job opened anew when it is acquired next. A user who has it
// goes on with it.
func (b *Boards) Forget(job Job) {
	if b.count.Load() == 0 {
		return
	}
	b.mu.Lock()
	s := b.open[job]
	if s == nil {
		b.mu.Unlock()
		return
	}
	unused := b.takeLocked(s)
	b.mu.Unlock()
	if unused {
		_ = s.board.Close()
	}
}

// forgetLocked takes a board off the list.
func (b *Boards) forgetLocked(job Job) {
	delete(b.open, job)
	b.count.Store(int64(len(b.open)))
}

// Close ends all boards, used ones too, with [ErrClosed].
func (b *Boards) Close() {
	b.mu.Lock()
	b.closed = true
	var all []*shared
	for _, s := range b.open {
		b.takeLocked(s)
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		<-s.ready
		if s.err == nil {
			_ = s.board.Close()
		}
	}
}
