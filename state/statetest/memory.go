package statetest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jobhost/jobhost/state"
)

// Memory is a [state.Store] for tests that shows what the contract means: it keeps
// states in maps, under one lock.
type Memory struct {
	// Now is its clock.
	Now func() time.Time
	// Before, if not nil, is called with each write before it is made; its error is
	// that of the write.
	Before func(state.State) error

	mu     sync.Mutex
	jobs   map[string]*memoryJob
	events int
	closed bool
}

type memoryJob struct {
	state.Info
	made   bool // it is more than looked at
	states map[memoryKey]state.State
	feeds  map[*memorySource]state.Feed
}

type memoryKey struct {
	task int
	tag  string
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{Now: time.Now, jobs: map[string]*memoryJob{}} }

var _ state.Store = (*Memory)(nil)

// Open implements [state.Store].
func (m *Memory) Open(_ context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[job.Key()]
	switch {
	case m.closed:
		return nil, state.ErrClosed
	case j == nil && tasks == 0:
		return nil, state.NotFound(job)
	case j != nil && !j.DeletedAt.IsZero():
		return nil, state.Marked(job)
	case j == nil:
		j = &memoryJob{
			Info:   state.Info{Job: job, Tasks: tasks},
			states: map[memoryKey]state.State{}, feeds: map[*memorySource]state.Feed{},
		}
		m.jobs[job.Key()] = j
	}
	s := &memorySource{store: m, job: j}
	j.feeds[s] = feed
	for _, st := range j.states {
		feed.Put(st)
	}
	return s, nil
}

// Jobs implements [state.Store].
func (m *Memory) Jobs(_ context.Context, after string, limit int) ([]state.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, state.ErrClosed
	}
	var list []state.Info
	for key, j := range m.jobs {
		if key > after && j.made {
			info := j.Info
			info.States = len(j.states)
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b state.Info) int { return cmp.Compare(a.Key(), b.Key()) })
	return list[:min(limit, len(list))], nil
}

// Mark implements [state.Store].
func (m *Memory) Mark(_ context.Context, job state.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return state.ErrClosed
	}
	j := m.jobs[job.Key()]
	if j == nil {
		return state.NotFound(job)
	}
	j.make(m.Now())
	if j.DeletedAt.IsZero() {
		j.DeletedAt = m.Now()
	}
	j.end(state.ErrDeleted)
	return nil
}

// Delete implements [state.Store].
func (m *Memory) Delete(_ context.Context, job state.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return state.ErrClosed
	}
	j := m.jobs[job.Key()]
	if j == nil {
		return state.NotFound(job)
	}
	delete(m.jobs, job.Key())
	j.end(state.ErrDeleted)
	return nil
}

// Close implements [state.Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, j := range m.jobs {
		j.end(state.ErrClosed)
	}
	return nil
}

// Reopen closes the store and returns one with the states that it had.
func (m *Memory) Reopen() *Memory {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{Now: m.Now, Before: m.Before, jobs: m.jobs, events: m.events}
}

// make makes a job that was only looked at.
func (j *memoryJob) make(now time.Time) {
	if !j.made {
		j.made, j.CreatedAt, j.ChangedAt = true, now, now
	}
}

func (j *memoryJob) end(reason error) {
	for s, feed := range j.feeds {
		delete(j.feeds, s)
		feed.End(reason)
	}
}

type memorySource struct {
	store *Memory
	job   *memoryJob
}

// Tasks implements [state.Source].
func (s *memorySource) Tasks() int { return s.job.Tasks }

// Set implements [state.Source].
func (s *memorySource) Set(_ context.Context, st state.State) (state.State, error) {
	m := s.store
	if m.Before != nil {
		if err := m.Before(st); err != nil {
			return state.State{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return state.State{}, state.ErrClosed
	case m.jobs[s.job.Key()] != s.job || !s.job.DeletedAt.IsZero():
		return state.State{}, state.ErrDeleted
	}
	key := memoryKey{st.TaskID, st.Tag}
	last := s.job.states[key]
	if st.EventID != "" && st.EventID == last.EventID {
		return last, nil
	}
	if st.EventID == "" {
		m.events++
		st.EventID = "event-" + strconv.Itoa(m.events)
	}
	st.Version, st.Timestamp = last.Version+1, m.Now()
	s.job.make(st.Timestamp)
	s.job.states[key] = st
	s.job.ChangedAt = st.Timestamp
	for _, feed := range s.job.feeds {
		feed.Put(st)
	}
	return st, nil
}

// Close implements [state.Source].
func (s *memorySource) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.job.feeds, s)
	if m := s.store; !s.job.made && len(s.job.feeds) == 0 && m.jobs[s.job.Key()] == s.job {
		delete(m.jobs, s.job.Key())
	}
	return nil
}
