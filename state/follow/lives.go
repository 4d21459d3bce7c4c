// Package follow keeps who follows the states of which job, for stores all of whose changes go through one process and
// are made by one goroutine, its writer.
//
//	Open ─► the feed joins the life ─► rows in a snapshot ─► feed
//	Set ─► Write ─► the store's writer ─► Done, in order ─► feeds, then the caller
//
// What makes deletion safe is the [Life]: see there.
package follow

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/state"
)

// Lives are the jobs of a store that are followed. Their methods may be called from many goroutines.
type Lives struct {
	failed func() error
	prefix string // of the events' names
	events atomic.Uint64

	mu     sync.Mutex // protects lives, all their users, and closed
	lives  map[string]map[string]*Life
	closed bool
}

// New returns no lives yet. failed returns why the store takes no changes any more; nil = it does.
func New(failed func() error) *Lives {
	return &Lives{failed: failed, prefix: rand.Text()[:16] + "-", lives: map[string]map[string]*Life{}}
}

// Join returns the life of a job, with a user more.
func (s *Lives) Join(job state.Job) *Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.lives[job.ID]
	if runs == nil {
		runs = map[string]*Life{}
		s.lives[job.ID] = runs
	}
	l := runs[job.Run]
	if l == nil {
		l = &Life{Job: job, feeds: map[*Source]state.Feed{}}
		runs[job.Run] = l
	}
	l.users++
	return l
}

// Leave takes a user from a life, which ends without one.
func (s *Lives) Leave(l *Life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if l.users == 0 {
		s.dropLocked(l)
	}
}

// dropLocked forgets a life.
func (s *Lives) dropLocked(l *Life) {
	runs := s.lives[l.Job.ID]
	if runs[l.Job.Run] != l {
		return
	}
	delete(runs, l.Job.Run)
	if len(runs) == 0 {
		delete(s.lives, l.Job.ID)
	}
}

// bury ends a life whose job was deleted. The next one to come begins another.
func (s *Lives) bury(l *Life) {
	s.mu.Lock()
	s.dropLocked(l)
	s.mu.Unlock()
	l.end(state.ErrDeleted)
}

// Any reports whether any job is followed.
func (s *Lives) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lives) > 0
}

// Rowless returns the runs of a job that are followed and have no row, but for those of the host, which aren't the
// job's.
func (s *Lives) Rowless(id string) (jobs []state.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives[id] {
		if l.ID.Load() == 0 && !l.Job.OfHost() {
			jobs = append(jobs, l.Job)
		}
	}
	return jobs
}

// Close ends all feeds with [state.ErrClosed], and refuses further ones.
func (s *Lives) Close() {
	for _, l := range s.shut() {
		l.end(state.ErrClosed)
	}
}

// shut refuses further users, and returns the lives that there are.
func (s *Lives) shut() (all []*Life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, runs := range s.lives {
		for _, l := range runs {
			all = append(all, l)
		}
	}
	return all
}

// Closed reports whether Close was called.
func (s *Lives) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Explain returns the error of a read or write: after Close that is what it says.
func (s *Lives) Explain(doing string, err error) error {
	if s.Closed() && s.failed() == nil {
		return state.ErrClosed
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// eventID names a write that has no name.
func (s *Lives) eventID() string { return s.prefix + strconv.FormatUint(s.events.Add(1), 36) }

// Time returns a time that is stored in microseconds since 1970; 0 = none.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
