package queuetest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Memory is the model as a [record.Store]: slow with many jobs, plain to read,
// and free of everything that a database adds. It is for tests of what stands
// on a store.
type Memory struct {
	mu     sync.RWMutex // protects model and closed
	model  *model
	closed bool

	order sync.Mutex  // held from a change to its place in told
	told  chan func() // the callbacks, in the order of the changes
	ended chan struct{}
}

var _ record.Store = (*Memory)(nil)

// NewMemory returns an empty store. Its goroutine calls back; it ends with Close.
func NewMemory() *Memory { return newMemory(newModel(1)) }

func newMemory(m *model) *Memory {
	s := &Memory{model: m, told: make(chan func(), 1024), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for tell := range s.told {
			tell()
		}
	}()
	return s
}

// Reopen closes the store and returns one with what it held.
func (s *Memory) Reopen() *Memory {
	_ = s.Close()
	return newMemory(s.model)
}

var errClosed = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the store is closed"}

// Commit implements [record.Store].
func (s *Memory) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	s.order.Lock()
	defer s.order.Unlock()
	results, err := s.apply(ops)
	if err == nil {
		s.told <- func() { done(results, nil) }
		return
	}
	var told sync.WaitGroup
	told.Go(func() { done(nil, err) })
	told.Wait()
}

func (s *Memory) apply(ops []record.Op) ([]record.OpResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	results := make([]record.OpResult, len(ops))
	for i, op := range ops {
		var err error
		if results[i], err = s.model.apply(op, s.model.free(op)); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// read runs a question unless the context or the store has ended.
func (s *Memory) read(ctx context.Context, ask func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Where a database would wait, others get their turn: readers that never
	// wait would keep the goroutine that calls back waiting for 10 ms each time.
	defer runtime.Gosched()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return ask()
}

// Claim implements [record.Store].
func (s *Memory) Claim(ctx context.Context, worker string, after record.Place, limit int) (out []record.Claimed, err error) {
	err = s.read(ctx, func() error {
		out = s.model.claim(worker, after, limit)
		return nil
	})
	return out, err
}

// Load implements [record.Store].
func (s *Memory) Load(ctx context.Context, keys []record.Key) (out []record.Body, err error) {
	err = s.read(ctx, func() error {
		out = s.model.load(keys)
		return nil
	})
	return out, err
}

// Job implements [queue.Reader].
func (s *Memory) Job(ctx context.Context, id string) (out record.JobRecord, err error) {
	err = s.read(ctx, func() error {
		job := s.model.jobs[id]
		if job == nil {
			return s.model.code(jobhost.CodeNotFound).Err
		}
		out = job.record()
		out.Failures = slices.Clone(out.Failures)
		return nil
	})
	return out, err
}

// Jobs implements [queue.Reader].
func (s *Memory) Jobs(ctx context.Context, q record.ListQuery) (out []record.JobRecord, err error) {
	err = s.read(ctx, func() error {
		out = s.model.list(&q)
		return nil
	})
	return out, err
}

// Result implements [queue.Reader].
func (s *Memory) Result(ctx context.Context, key record.Key) (out []byte, err error) {
	err = s.read(ctx, func() error {
		_, task := s.model.task(key)
		if task == nil || task.Status != record.Succeeded {
			return s.model.code(jobhost.CodeNotFound).Err
		}
		out = task.result
		return nil
	})
	return out, err
}

// Results implements [queue.Reader].
func (s *Memory) Results(ctx context.Context, key record.Key, from, limit, most int) (out []record.ResultRecord, err error) {
	err = s.read(ctx, func() error {
		job, _ := s.model.task(key)
		if job == nil {
			return nil
		}
		room := most
		for i := from; i < len(job.tasks) && len(out) < limit; i++ {
			task := job.tasks[i]
			if task.Status != record.Succeeded {
				continue
			}
			if room -= len(task.result); room < 0 && len(out) > 0 {
				break
			}
			out = append(out, record.ResultRecord{Index: i, Data: task.result, Size: task.ResultSize, Ref: task.ResultRef})
		}
		return nil
	})
	return out, err
}

// Logs implements [queue.Reader].
func (s *Memory) Logs(ctx context.Context, key record.Key) (out []record.LogRecord, err error) {
	err = s.read(ctx, func() error {
		if job, _ := s.model.task(key); job != nil {
			out = slices.Clone(job.logs)
		}
		return nil
	})
	return out, err
}

// Counts implements [queue.Reader].
func (s *Memory) Counts(ctx context.Context) (out map[string]record.StatusCounts, err error) {
	err = s.read(ctx, func() error {
		out = maps.Clone(s.model.counts())
		return nil
	})
	return out, err
}

// Newest implements [queue.Reader].
func (s *Memory) Newest(ctx context.Context) (at record.Millis, err error) {
	err = s.read(ctx, func() error {
		var newest record.Key
		for _, job := range s.model.jobs {
			if job.spec.Key > newest {
				newest, at = job.spec.Key, job.spec.CreatedAt
			}
		}
		return nil
	})
	return at, err
}

// Notes implements [queue.Reader].
func (s *Memory) Notes(ctx context.Context) (out map[string]string, err error) {
	err = s.read(ctx, func() error {
		out = maps.Clone(s.model.notes)
		return nil
	})
	return out, err
}

// Dead implements [queue.DeadReader].
func (s *Memory) Dead(ctx context.Context, q record.DeadQuery) (out []record.DeadRecord, next record.DeadPlace, err error) {
	err = s.read(ctx, func() error {
		out, next = s.model.letters(&q)
		return nil
	})
	return out, next, err
}

// Deaths implements [queue.DeadReader].
func (s *Memory) Deaths(ctx context.Context, after, before record.Millis) (out []record.DeathRecord, err error) {
	err = s.read(ctx, func() error {
		out = s.model.deaths(after, before)
		return nil
	})
	return out, err
}

// Now implements [record.Store].
func (s *Memory) Now() time.Time { return time.Now() }

// Failed implements [record.Store]. There is nothing that can fail.
func (s *Memory) Failed() <-chan struct{} { return nil }

// Err implements [record.Store].
func (s *Memory) Err() error { return nil }

// Close implements [record.Store].
func (s *Memory) Close() error {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.told)
	}
	s.mu.Unlock()
	<-s.ended
	return nil
}
